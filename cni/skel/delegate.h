// Running another plugin, as SPEC.md section "Delegated plugins" says: found in the
// request's path, given the request's CNI_* environment and a configuration.
//
// The CNI_* variables that the specification names are made from the request alone,
// whatever this process's own are: a request may be about another attachment, or
// come from a program that is no CNI plugin. What is empty in it is unset for the
// child. The rest of the environment is passed on.
// Threads: waits for the child. SIGPIPE is ignored meanwhile, for the whole process.
#pragma once

#include <string>
#include <vector>

#include "cni/skel/plugin.h"
#include "netns/base/result.h"

namespace railhead {

struct DelegateCall {
  std::string type;     // plugin's name, no path
  std::string command;  // ADD, DEL, CHECK, GC, STATUS
  std::string config;   // for its standard input
  // Stay open in the child: locks that must outlive us if we are killed while the
  // child works.
  std::vector<int> inherited_fds;
};

// What the plugin printed. Its CNI error comes back as an Error with the code
// that belongs to it and "TYPE COMMAND: msg".
Result<std::string> RunDelegate(const CniRequest& request, const DelegateCall& call);

}  // namespace railhead
