// CniRequest: one CNI call, as RunCniPlugin() (cni/protocol/plugin.h) has checked it.
// Threads: values. Source: containernetworking/cni SPEC.md (1.1.0).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace railhead {

// One call. For DEL `netns` may be anything, and `ifname` any text that is not empty. GC and STATUS are about
// a network, not a container: container_id, netns, ifname and args are empty.
struct CniRequest {
  std::string command;  // ADD, DEL, CHECK, GC, STATUS
  std::string container_id;
  std::string netns;
  std::string ifname;
  std::map<std::string, std::string> args;  // CNI_ARGS
  std::vector<std::string> path;            // CNI_PATH
  std::string network;                      // "name" of the configuration
  std::string cni_version;                  // of the result
  std::string config;                       // standard input, unchanged
  bool netns_override = false;              // CNI_NETNS_OVERRIDE: the plugin's own namespace is allowed
};

// What CNI_IFNAME may be: 1 to 15 ASCII characters, no '/', ':', '%', blank or control character, not ".",
// "..", "all" or "default".
bool IsInterfaceName(std::string_view text);

// An attachment that GC must not release.
struct ValidAttachment {
  std::string container_id;
  std::string ifname;

  bool operator==(const ValidAttachment&) const = default;
};

}  // namespace railhead
