// Runs another plugin, as SPEC.md section "Delegated plugins" says. It is found in the request's path, and
// gets the request's CNI_* environment and a configuration.
//
// The CNI_* variables of the specification come from the request alone, not from this process: a request can
// be for another attachment, or come from a program that is no CNI plugin. Empty fields are unset for the
// child. The rest of the environment is passed on. Threads: waits for the child. SIGPIPE is ignored
// meanwhile, for the whole process.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cni/protocol/plugin.h"
#include "netns/base/result.h"

namespace railhead {

struct DelegateCall {
  std::string type;     // plugin's name, no path
  std::string command;  // ADD, DEL, CHECK, GC, STATUS
  std::string config;   // for its standard input
  // Descriptors that stay open in the child: locks that must outlive this process if it is killed first.
  std::vector<int> inherited_fds;
  // After this time the child and all that it started are killed. Longer than a working plugin takes, and
  // than a runtime waits.
  std::chrono::seconds limit{180};
};

// Returns the plugin's output. A CNI error becomes an Error with its code and "TYPE COMMAND: msg", and sets
// *refused. After a crash, a time-out (kTimeout) or endless output *refused stays false: then it is unknown
// what the plugin did. Does not wait for processes that the plugin leaves running.
Result<std::string> RunDelegate(const CniRequest& request, const DelegateCall& call, bool* refused = nullptr);

}  // namespace railhead
