// The subcommands of railctl: each function adds one to `app`.
//
// A command's callback writes to standard output (see output.h), errors to standard
// error, and its exit status to *status. `root` and `status` outlive the parsing.
// Threads: one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "deviceplugin/tools/railctl/output.h"
#include "netns/base/exit_status.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::preflight {
struct RailPf;
}  // namespace railhead::preflight
namespace railhead::rdma_test {
struct TestEnd;
}  // namespace railhead::rdma_test

namespace railhead::railctl {

inline constexpr const char* kProgram = "railctl";

// netns/base/exit_status.h has their meanings.
inline constexpr int kDone = kExitDone;
inline constexpr int kFailed = kExitFailed;
inline constexpr int kUsage = kExitUsage;
inline constexpr int kBadConfig = kExitBadConfig;
inline constexpr int kChangesNeeded = kExitChangesNeeded;
inline constexpr int kUndetermined = kExitUndetermined;

// "railctl: MESSAGE", and the way out on a line of its own; returns `status`.
int Complain(const Error& error, int status);

// All of them, in the groups of --help.
void AddCommands(CLI::App* app, const Root& root, int* status);

// completion, and the hidden man-page
void AddCompletionCommands(CLI::App* app, int* status);
// config check, config diff, config schema
void AddConfigCommand(CLI::App* app, const Root& root, int* status);
void AddConfigDiffCommand(CLI::App* config, const Root& root, int* status);
void AddDescribeCommand(CLI::App* app, const Root& root, int* status);
void AddDevicesCommand(CLI::App* app, const Root& root, int* status);
void AddDoctorCommand(CLI::App* app, const Root& root, int* status);
// drain, undrain
void AddDrainCommands(CLI::App* app, const Root& root, int* status);
void AddExplainCommand(CLI::App* app, int* status);
// fabric suggest
void AddFabricCommand(CLI::App* app, const Root& root, int* status);
// nccl show, nccl verify
void AddNcclCommand(CLI::App* app, const Root& root, int* status);
// health, health replay
void AddHealthCommand(CLI::App* app, const Root& root, int* status);
void AddHealthReplayCommand(CLI::App* health, const Root& root, int* status);
// install cli, cni, config, seccomp, check-removal
void AddInstallCommand(CLI::App* app, const Root& root, int* status);
void AddInstallRemovalCommand(CLI::App* install, const Root& root, int* status);
// ipam list, show, check, events, release, export
void AddIpamCommand(CLI::App* app, const Root& root, int* status);
// ipam import host-local, whereabouts
void AddIpamImportCommand(CLI::App* ipam, const Root& root, int* status);
// journal list, show, restore
void AddJournalCommand(CLI::App* app, const Root& root, int* status);
void AddLabelsCommand(CLI::App* app, const Root& root, int* status);
void AddLldpCommand(CLI::App* app, const Root& root, int* status);
// migrate
void AddMigrateCommand(CLI::App* app, const Root& root, int* status);
void AddPreflightCommand(CLI::App* app, const Root& root, int* status);
// rdma-test
void AddRdmaTestCommand(CLI::App* app, const Root& root, int* status);
void AddReachabilityCommand(CLI::App* app, const Root& root, int* status);
void AddStatusCommand(CLI::App* app, const Root& root, int* status);
// topology, with the alias topo
void AddTopologyCommand(CLI::App* app, const Root& root, int* status);
// vfs plan, vfs apply
void AddVfsCommand(CLI::App* app, const Root& root, int* status);
void AddWhyCommand(CLI::App* app, const Root& root, int* status);

// The whole program, from its command line to its exit status (see --help). Once per process, on its first
// thread.
int RunRailctl(int argc, char** argv);

// That the file which a command needs does not exist.
Error NoSuchFabric(const std::string& path);

// The rails' PFs on this node, in the fabric's order. Errors: those of fabric.json; kNotFound without it.
Result<std::vector<preflight::RailPf>> ReadRailPfs(const Root& root, const std::string& fabric);

// The ends of an RDMA test: as rdma_test::ResolveEnd() takes them, or anything that FindSubject() finds and
// that is in one pod.
Result<std::vector<rdma_test::TestEnd>> FindTestEnds(const Root& root, const std::vector<std::string>& said);

// Tells them: one by one as Complain() does, and in JSON or YAML as {"ok": false, "error": the first of
// "errors"} on standard output. Returns `status`. Needs one at least.
int Refuse(const std::vector<Error>& errors, const Output& output, int status);

}  // namespace railhead::railctl
