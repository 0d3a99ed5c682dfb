// The subcommands of railctl: each function adds one to `app`.
//
// A command's callback writes to standard output (see output.h), errors to standard
// error, and its exit status to *status. `root` and `status` outlive the parsing.
// Threads: one.
#pragma once

#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reconcile/address_owners.h"
#include "deviceplugin/tools/railctl/output.h"
#include "ipam/store/node_blocks.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/ns/netns.h"

namespace railhead::preflight {
struct RailPf;
}  // namespace railhead::preflight
namespace railhead::rdma_test {
struct TestEnd;
}  // namespace railhead::rdma_test
namespace railhead::resources {
struct ConfigSource;
}  // namespace railhead::resources
namespace railhead::resources {
struct Plan;
}  // namespace railhead::resources

namespace railhead::railctl {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;         // it failed, or a check found a problem
inline constexpr int kUsage = 2;          // wrong command line
inline constexpr int kBadConfig = 3;      // a configuration is missing or invalid
inline constexpr int kChangesNeeded = 4;  // vfs plan, migrate: there is something to do
inline constexpr int kUndetermined = 5;   // preflight: nothing is bad, but not all could be judged

// "railctl: MESSAGE", and the way out on a line of its own; returns `status`.
int Complain(const Error& error, int status);

// All of them.
void AddCommands(CLI::App* app, const Root& root, int* status);

void AddCompletionCommand(CLI::App* app, int* status);
// config check
void AddConfigCommand(CLI::App* app, const Root& root, int* status);
void AddDescribeCommand(CLI::App* app, const Root& root, int* status);
void AddDevicesCommand(CLI::App* app, const Root& root, int* status);
void AddDoctorCommand(CLI::App* app, const Root& root, int* status);
// drain, undrain
void AddDrainCommands(CLI::App* app, const Root& root, int* status);
void AddExplainCommand(CLI::App* app, int* status);
// nccl show, nccl verify
void AddNcclCommand(CLI::App* app, const Root& root, int* status);
// health, health replay
void AddHealthCommand(CLI::App* app, const Root& root, int* status);
void AddHealthReplayCommand(CLI::App* health, const Root& root, int* status);
// install cni, install config
void AddInstallCommand(CLI::App* app, const Root& root, int* status);
// ipam list, show, check, events, blocks, release, export
void AddIpamCommand(CLI::App* app, const Root& root, int* status);
void AddIpamBlocksCommand(CLI::App* ipam, const Root& root, int* status);
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

// RunRailctl: the whole program railctl, the operator's command, from its command line to its exit status
// (see --help). Threads: once per process, on its first thread.

int RunRailctl(int argc, char** argv);

// Completion of a command line in bash, zsh and fish, made from the commands themselves: what is added to
// railctl is completed without a word here.
// Threads: pure.

enum class Shell { kBash, kZsh, kFish };

// The script to source, or to put where the shell looks: for bash
// /usr/share/bash-completion/completions/NAME, for zsh _NAME in its fpath, for fish
// vendor_completions.d/NAME.fish.
std::string CompletionScript(const CLI::App& app, const std::string& name, Shell shell);

// What this node would advertise by that configuration. Asks the kernel which devices the host itself uses.
Result<resources::Plan> PlanOf(const Root& root, const resources::ConfigSource& source);

// The rails' PFs on this node, in the fabric's order. Errors: those of fabric.json; kNotFound: there is none.
Result<std::vector<preflight::RailPf>> ReadRailPfs(const Root& root, const std::string& fabric);

// The ends of an RDMA test: as rdma_test::ResolveEnd() takes them, or anything that FindSubject() finds and
// that is in one pod.
Result<std::vector<rdma_test::TestEnd>> FindTestEnds(const Root& root, const std::vector<std::string>& said);

// Tells them: one by one as Complain() does, and in JSON or YAML as {"ok": false, "error": the first of
// "errors"} on standard output. Returns `status`. Needs one at least.
int Refuse(const std::vector<Error>& errors, const Output& output, int status);

// What one node reaches, as tables.
// Threads: one.

// Rails; then the faulty peers and pods, or all of them.
void PrintReachability(const Output& output, const reachability::ReachabilityReport& report, bool all);

// Whether a rail, gateway, peer or pod is known to be faulty.
bool HasFault(const reachability::ReachabilityReport& report);

// Addresses of the node's store with all that this node knows of their holders.
// Threads: values. Errors: those of the store, the journal and the runtimes' directories.

// "held", "cooling down", "quarantined"
std::string_view StateOf(const ipam::AddressRecord& record);
inline std::chrono::system_clock::time_point WallTime(std::int64_t seconds) {
  return std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
}

struct KnownAddress {
  ipam::AddressRecord record;
  std::string pod;        // "namespace/name", of an attachment of railhead; else empty
  bool attached = false;  // an attachment of railhead has it
  // Why nobody can have it any more; empty: somebody may.
  std::string leak;

  static void List(auto& f) {
    f.Part(&KnownAddress::record, [](auto& part) {
      part("address", &ipam::AddressRecord::address, {.column = "ADDRESS"});
      part("pool", &ipam::AddressRecord::pool, {.column = "POOL"});
      part.Output("state", &StateOf);
    });
    f.Column("STATE", [](const KnownAddress& it) { return it.leak.empty() ? StateOf(it.record) : "leaked"; });
    f.Part(&KnownAddress::record, [](auto& part) {
      using Record = ipam::AddressRecord;
      part.Output("since", [](const Record& it) { return WallTime(it.wall_seconds); }, {.column = "SINCE"});
      part.Part(&Record::owner, [](auto& owner) {
        owner("container", &ipam::AddressOwner::container, {.column = "CONTAINER"});
        owner.Column("INTERFACE", &ipam::AddressOwner::ifname);
        owner.Output("interface", &ipam::AttachmentIfname);
        owner.Output("link", &ipam::LinkName, kSparseField);
        owner("network", &ipam::AddressOwner::network, {.column = "NETWORK"});
      });
      part("bootId", &Record::boot_id);
    });
    f("attached", &KnownAddress::attached);
    f("pod", &KnownAddress::pod, {.need = Need::kSparse, .column = "POD"});
    f("leak", &KnownAddress::leak, {.need = Need::kSparse, .column = "LEAK", .wide = kWide});
  }
};

struct AddressReport {
  std::vector<KnownAddress> addresses;  // by pool, then address
  std::vector<std::string> damage;      // contradictions within the store
  bool complete = false;                // AddressHolders::complete()

  [[nodiscard]] std::vector<KnownAddress> Leaked() const;
  // What `railctl ipam check` says.
  static void List(auto& f) {
    f.Output("leaked", &AddressReport::Leaked);
    f("damage", &AddressReport::damage);
    f("complete", &AddressReport::complete);
  }
};

// nullopt: there is no store.
Result<std::optional<AddressReport>> ReportAddresses(const Root& root);

struct BlockLine {
  ipam::NodeBlock block;
  std::size_t in_use = 0;  // addresses that are not free

  static void List(auto& f) {
    f.Part(&BlockLine::block, [](auto& part) {
      using Block = ipam::NodeBlock;
      part.Column("BLOCK", [](const Block& it) { return it.range.ToString(); });
      part("pool", &Block::pool, {.column = "POOL"});
      part("number", &Block::index, {.column = "NUMBER"});
      part.Output("first", [](const Block& it) { return it.range.first; });
      part.Output("last", [](const Block& it) { return it.range.last; });
      part.Output("state", [](const Block& it) { return NameOf(it.state); }, {.column = "STATE"});
    });
    f("inUse", &BlockLine::in_use, {.column = "IN USE"});
  }
};

// The blocks that this node leases.
struct LeaseReport {
  std::optional<std::string> node;  // nullopt: it leases nothing
  std::vector<BlockLine> blocks;
  std::string invalid;  // why no address is allocated from them; empty: addresses are

  static void List(auto& f) {
    f("blocks", &LeaseReport::blocks);
    f.Output("usable", [](const LeaseReport& report) { return report.node && report.invalid.empty(); });
    f("node", &LeaseReport::node);
    f("because", &LeaseReport::invalid, kSparseField);
  }
};

Result<LeaseReport> ReadLease(const Root& root);

}  // namespace railhead::railctl

namespace railhead::railctl {

// The NCCL configurations of pods, for `railctl nccl`.
//
// Ownership: values. Threads: as Kernel. Errors: kNotFound when no pod matches.

// Variables in the environment of a pod's processes that override its NCCL configuration: NCCL's and UCX's
// files never override the environment, and a process can change the variables that it was started with.
// Threads: any. Errors: kIo, kPermission. Needs the node's /proc and the right to read the pod's.

// Configured lines NAME=value, and the file or variables that have them.
struct ConfiguredLines {
  std::string where;  // "nccl.conf"
  std::string text;
};

struct Override {
  pid_t pid = 0;
  std::string variable;
  std::string value;       // the process's
  std::string configured;  // the value that it overrides
  std::string where;

  static void List(auto& f) {
    f("pid", &Override::pid);
    f("variable", &Override::variable);
    f("value", &Override::value);
    f("configured", &Override::configured);
    f("where", &Override::where);
  }
};

// The variables of processes that differ from `configured`. A process that has ended meanwhile has none.
Result<std::vector<Override>> FindOverrides(const NetNs& pod, const std::vector<ConfiguredLines>& configured);

// Of one process: `environ` as in /proc/PID/environ.
std::vector<Override> OverridesIn(pid_t pid, const std::string& environ, const ConfiguredLines& configured);

// The NCCL configuration of one sandbox.
struct SandboxNcclConfig {
  std::string container;
  std::string pod;  // "namespace/name"; "": the runtime did not name it
  std::string netns;
  std::vector<JournalEntry> attachments;
  std::string nccl_conf;         // "": there is no such file
  std::string ucx_conf;          // likewise
  bool topology = false;         // there is a topology file
  std::vector<std::string> env;  // "NAME=value", from the CDI specs
};

// `which`: as FindSubject() takes it; "": all. Only attachments that have an NCCL configuration, or should
// have one.
Result<std::vector<SandboxNcclConfig>> FindNcclConfigs(const Root& root, const std::string& which);

struct NcclConfigVerdict {
  std::vector<std::string> differences;  // empty: the NICs match
  std::vector<Override> overrides;
};

Result<NcclConfigVerdict> VerifyNcclConfig(const Root& root, Kernel& kernel, const SandboxNcclConfig& config);

}  // namespace railhead::railctl
