// sysctls of a network namespace, by path below /proc/sys: "net/ipv4/conf/eth0/arp_ignore".
//
// Below /proc/sys/net the kernel shows the files of the opening thread's namespace (net_ctl_root in
// net/sysctl_net.c). So they are opened there, like sockets, and read and written after the return. Paths
// separate by '/': names of interfaces may contain dots. Only paths below net/ are taken: others belong to
// the node.
// Threads: any. Errors name the sysctl as sysctl(8) does, with dots for slashes and slashes for dots.
// They are kInvalid for an invalid path or value, kNotFound when this kernel or namespace lacks the sysctl,
// and kPermission.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

struct Sysctl {
  std::string path;
  std::string value;

  bool operator==(const Sysctl&) const = default;
};

// In the order of `paths`, without the final newline; nullopt: the sysctl does not exist.
Result<std::vector<std::optional<std::string>>> ReadSysctls(const NetNs& ns,
                                                            const std::vector<std::string>& paths);

// In order. All are opened before the first is written, so an unknown one is reported with nothing changed.
// After a refused value the earlier values stay written.
Result<void> WriteSysctls(const NetNs& ns, const std::vector<Sysctl>& values);

}  // namespace railhead
