// The subcommands of railctl: each function adds one to `app`.
//
// A command's callback writes to standard output (JSON with --json), errors to standard
// error, and its exit status to *status. `root` and `status` outlive the parsing.
// Threads: one.
#pragma once

#include <CLI/CLI.hpp>

#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::railctl {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;         // could not be done, or what was checked is not well
inline constexpr int kUsage = 2;          // wrong command line
inline constexpr int kBadConfig = 3;      // a configuration is missing or wrong
inline constexpr int kChangesNeeded = 4;  // vfs plan, migrate: there is something to do; replay: it differs
inline constexpr int kNotJudged = 5;      // precheck: nothing is bad, but not all could be judged

// "railctl: MESSAGE", and the way out on a line of its own; returns `status`.
int Complain(const Error& error, int status);

void AddCompletionCommand(CLI::App* app, int* status);
// config check
void AddConfigCommand(CLI::App* app, const Root& root, int* status);
void AddDoctorCommand(CLI::App* app, const Root& root, int* status);
// drain, return
void AddDrainCommands(CLI::App* app, const Root& root, int* status);
// handoff show, handoff verify
void AddHandoffCommand(CLI::App* app, const Root& root, int* status);
void AddHealthCommand(CLI::App* app, const Root& root, int* status);
// install cni, install config
void AddInstallCommand(CLI::App* app, const Root& root, int* status);
// ipam list, show, check, events, blocks, release, export
void AddIpamCommand(CLI::App* app, const Root& root, int* status);
void AddIpamBlocksCommand(CLI::App* ipam, const Root& root, int* status);
// ipam import host-local, whereabouts
void AddIpamImportCommand(CLI::App* ipam, const Root& root, int* status);
// journal list, show, restore
void AddJournalCommand(CLI::App* app, const Root& root, int* status);
void AddLeavesCommand(CLI::App* app, const Root& root, int* status);
// migrate
void AddMigrateCommand(CLI::App* app, const Root& root, int* status);
void AddNetCommand(CLI::App* app, const Root& root, int* status);
void AddNodeFactsCommand(CLI::App* app, const Root& root, int* status);
void AddPrecheckCommand(CLI::App* app, const Root& root, int* status);
// rdma-test
void AddRdmaTestCommand(CLI::App* app, const Root& root, int* status);
// replay
void AddReplayCommand(CLI::App* app, const Root& root, int* status);
void AddTopoCommand(CLI::App* app, const Root& root, int* status);
// vfs plan, vfs apply
void AddVfsCommand(CLI::App* app, const Root& root, int* status);

}  // namespace railhead::railctl
