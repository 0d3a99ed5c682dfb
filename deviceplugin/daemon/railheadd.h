// RunRailheadd: the whole program railheadd, from its command line to its exit status (see --help).
//
// Serves until SIGTERM or SIGINT, or lists, reconciles or shows timings once. Logs on standard error.
// Exit status: 0 stopped by a signal, or done; 1 a failure while running; 2 wrong command line; 3 the
// configuration is missing or wrong.
// Threads: once per process, on its first thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/provision/provisioner.h"
#include "deviceplugin/support/http/http_server.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/exit_status.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::daemon {

int RunRailheadd(int argc, char** argv);

// Discovers the node: applies its configuration to its hardware, without the NICs that the host itself needs.
// At start, and whenever one of these may have changed.
// Threads: thread-safe.

struct NodePlan {
  resources::Plan plan;
  health::HealthRules health;
};

// Errors: those of MakePlan for the configuration. Pools of fabric.json that deliver RDMA device nodes by
// "mount" give kInvalid while the node is in exclusive mode. Resources of a config.json do so there as well,
// as their users know it: that is a warning. Other errors mean that the host's network could not be read:
// otherwise a NIC that the host needs could be allocated to a pod.
Result<NodePlan> PlanNode(const Root& root, Kernel& kernel, const resources::ConfigSource& source,
                          const resources::DdpLookup& ddp, const inventory::PfReads& reads = {});
// With drivers as they answer now.
inline Result<NodePlan> PlanNode(const Root& root, Kernel& kernel, const resources::ConfigSource& source) {
  return PlanNode(root, kernel, source, resources::DdpOfKernel(root));
}

// Makes the VFs that fabric.json states, before the first discovery of the node.
//
// Logs changes, and refusals and failures as warnings: existing VFs are served all the same. Without work
// this only reads the PFs. `watch` gets the progress of changes, and may stop them. Threads: as Kernel.
// Errors: only those of the configuration.

// Does nothing when the daemon serves sriov-network-device-plugin's configuration, and
// when the fabric has no such settings.
Result<void> ProvisionAtStart(const Root& root, Kernel& kernel, const resources::ConfigSource& source,
                              const provision::ApplyWatch& watch, Log* log);

// The command line of railheadd.
// Threads: values.

enum ExitStatus : int {
  kStopped = kExitDone,  // by a signal, or what was asked for is done
  kFailed = kExitFailed,
  kUsage = kExitUsage,
  kBadConfig = kExitBadConfig,
};

struct CommandLine {
  resources::ConfigSource source;
  std::string kubelet_directory = "/var/lib/kubelet/device-plugins";
  std::string log_level = "info";
  LogFormat log_format = LogFormat::kJson;
  std::optional<http::HttpAddress> http_address;  // nullopt: no HTTP
  std::string http_socket;                        // of this process alone; "": none
  std::string ask;                                // a page to ask for there, and nothing else; "": none
  std::chrono::seconds reconcile_interval{30};    // 0: never
  std::chrono::seconds resync_interval{300};
  std::string probe_keys = kProbeKeysPath;
  std::string follow_config;                   // a directory of the wanted fabric; "": none
  std::string nfd_features;                    // a file for Node Feature Discovery; "": none
  std::vector<std::string> dropped_arguments;  // of sriov-network-device-plugin, without a meaning here
  // Instead of serving:
  bool list = false;
  bool reconcile_once = false;
  bool timings = false;
};

// Fills `line`, or returns the status to exit with.
std::optional<int> ParseCommandLine(int argc, char** argv, CommandLine* line);

// The command line of sriov-network-device-plugin, and of its image's entry point, in ours.
//
// A DaemonSet that is moved over keeps its arguments. Go's flag package takes one dash or
// two, "-name value" and "-name=value", and a boolean's value only behind "="; its
// underscores are glog's. What only steers glog is dropped: railheadd logs to stderr alone.
// Source: its cmd/sriovdp/main.go and images/entrypoint.sh; pkg.go.dev/flag; glog's glog_file.go.
// Threads: pure function.

struct ForeignArguments {
  std::vector<std::string> arguments;  // as railheadd's own
  std::vector<std::string> dropped;    // as they were written
};

// `arguments`: without the program's name. Arguments that are not theirs stay unchanged.
ForeignArguments TranslateGoFlags(const std::vector<std::string>& arguments);

}  // namespace railhead::daemon
