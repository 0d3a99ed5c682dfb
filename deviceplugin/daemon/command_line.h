// What railheadd is asked to do by its command line.
// Threads: values.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/support/http/http_server.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "deviceplugin/support/log/log.h"

namespace railhead {

enum ExitStatus : int { kStopped = 0, kFailed = 1, kUsage = 2, kBadConfig = 3 };

struct CommandLine {
  ConfigSource source;
  std::string kubelet_directory = "/var/lib/kubelet/device-plugins";
  std::string registry_directory = "/var/lib/kubelet/plugins_registry";
  bool registry = false;  // kubelet's plugin watcher finds us there; else we call Register
  std::string log_level = "info";
  LogFormat log_format = LogFormat::kJson;
  std::optional<HttpAddress> http_address;      // nullopt: no HTTP
  std::chrono::seconds reconcile_interval{30};  // 0: never
  std::chrono::seconds resync_interval{300};
  std::string probe_keys = kProbeKeysPath;
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
  std::vector<std::string> dropped;    // as they were given
};

// `arguments`: without the program's name. What is not theirs stays as it is.
ForeignArguments TranslateGoFlags(const std::vector<std::string>& arguments);

}  // namespace railhead
