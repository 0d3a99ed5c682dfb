// sysctls of a network namespace, by path below /proc/sys: "net/ipv4/conf/eth0/arp_ignore".
//
// The kernel shows the files below /proc/sys/net of the namespace that the opening
// thread is in (net_ctl_root in net/sysctl_net.c); so they are opened there, like
// sockets, and read and written after the return. Paths separate by '/': names of
// interfaces may contain dots. Only paths below net/ are taken: others belong to the
// node.
// Threads: any. Errors name the sysctl as sysctl(8) does, with dots for slashes and
// slashes for dots: kInvalid for a path or a value that cannot be, kNotFound for one
// that this kernel or namespace does not have, kPermission.
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

// In the order of `paths`, without the final newline; nullopt: there is none.
Result<std::vector<std::optional<std::string>>> ReadSysctls(const NetNs& ns,
                                                            const std::vector<std::string>& paths);

// In order. All are opened before the first is written, so an unknown one is reported
// with nothing changed; a value that is refused leaves those before it written.
Result<void> WriteSysctls(const NetNs& ns, const std::vector<Sysctl>& values);

}  // namespace railhead
