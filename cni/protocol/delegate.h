// Runs another plugin, as SPEC.md section "Delegated plugins" says. It is found in the request's path, and
// gets the request's CNI_* environment and a configuration.
//
// The specification's CNI_* variables come only from the request, not from this process. The request can be
// for another attachment, and this process need not be a CNI plugin. Empty fields are unset for the child.
// The rest of the environment is passed on. Threads: waits for the child. During the call the whole process
// ignores SIGPIPE.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cni/protocol/cni_request.h"
#include "netns/base/result.h"

namespace railhead {

struct DelegateCall {
  std::string type;     // plugin's name, no path
  std::string command;  // ADD, DEL, CHECK, GC, STATUS
  std::string config;   // for its standard input
  // Descriptors that stay open in the child: locks that must outlive this process if it is killed first.
  std::vector<int> inherited_fds;
  // After this time the child and all processes that it started are killed. Longer than a working plugin
  // takes, and than a runtime waits.
  std::chrono::seconds limit{180};
};

// Returns the plugin's output. A CNI error becomes an Error with its code and "TYPE COMMAND: msg", and sets
// *refused. After a crash, a timeout (kTimeout) or endless output *refused stays false: the plugin's effect
// is then unknown. Does not wait for processes that the plugin started in the background.
Result<std::string> RunDelegate(const CniRequest& request, const DelegateCall& call, bool* refused = nullptr);

}  // namespace railhead
