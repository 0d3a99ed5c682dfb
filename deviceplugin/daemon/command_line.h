// CommandLine: the command line of railheadd.
// Threads: values.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/support/http/http_address.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/exit_status.h"

namespace railhead::daemon {

enum ExitStatus : int {
  kStopped = kExitDone,  // by a signal, or what was asked for is done
  kFailed = kExitFailed,
  kUsage = kExitUsage,
  kBadConfig = kExitBadConfig,
};

struct CommandLine {
  ConfigSource source;
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

}  // namespace railhead::daemon
