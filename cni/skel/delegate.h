// Running another plugin, as SPEC.md section "Delegated plugins" says: found in
// CNI_PATH, given this process's CNI_* environment and a configuration.
// Threads: may be called from any thread; waits for the child.
#pragma once

#include <string>
#include <vector>

#include "cni/skel/plugin.h"
#include "netns/base/result.h"

namespace railhead {

struct DelegateCall {
  std::string type;     // plugin's name, no path
  std::string command;  // ADD, DEL, CHECK
  std::string config;   // for its standard input
  // Stays open in the child (-1: none): a lock that must outlive us if we are
  // killed while the child works.
  int inherited_fd = -1;
};

// What the plugin printed. Its CNI error comes back as an Error with the code
// that belongs to it and "TYPE COMMAND: msg".
Result<std::string> RunDelegate(const CniRequest& request, const DelegateCall& call);

}  // namespace railhead
