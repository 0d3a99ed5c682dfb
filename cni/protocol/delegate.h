// Running another plugin, as SPEC.md section "Delegated plugins" says: found in the
// request's path, given the request's CNI_* environment and a configuration.
//
// The CNI_* variables that the specification names are made from the request alone,
// whatever this process's own are: a request may be about another attachment, or
// come from a program that is no CNI plugin. What is empty in it is unset for the
// child. The rest of the environment is passed on.
// Threads: waits for the child. SIGPIPE is ignored meanwhile, for the whole process.
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
  // Stay open in the child: locks that must outlive us if we are killed while the
  // child works.
  std::vector<int> inherited_fds;
  // After this it is killed, with all that it has started. Longer than any plugin takes
  // that gets an answer at all, and so long that a runtime gives up first.
  std::chrono::seconds limit{180};
};

// What the plugin printed. Its CNI error comes back as an Error with the code
// that belongs to it and "TYPE COMMAND: msg"; *refused tells that it was one, and not a
// crash, a time-out (kTimeout) or output without end, after which nobody knows what it did.
// What it leaves running is not waited for.
Result<std::string> RunDelegate(const CniRequest& request, const DelegateCall& call, bool* refused = nullptr);

}  // namespace railhead
