// TranslateGoFlags: the command line of sriov-network-device-plugin, and of its image's entry point, in ours.
//
// A DaemonSet that is moved over keeps its arguments. Go's flag package takes one dash or
// two, "-name value" and "-name=value", and a boolean's value only behind "="; its
// underscores are glog's. What only steers glog is dropped: railheadd logs to stderr alone.
// Source: its cmd/sriovdp/main.go and images/entrypoint.sh; pkg.go.dev/flag; glog's glog_file.go.
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

namespace railhead::daemon {

struct ForeignArguments {
  std::vector<std::string> arguments;  // as railheadd's own
  std::vector<std::string> dropped;    // as they were written
};

// `arguments`: without the program's name. Arguments that are not theirs stay unchanged.
ForeignArguments TranslateGoFlags(const std::vector<std::string>& arguments);

}  // namespace railhead::daemon
