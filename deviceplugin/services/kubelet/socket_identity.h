// SocketIdentity: which socket a path names now. A process that starts again makes another one at the path.
//
// Inode numbers are used again, but not at the same time. So the identity has the time when the socket was
// made, too. It has not the change time: labels and modes may be set later.
// Threads: values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace railhead::kubelet {

struct SocketIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t made_ns = 0;
  bool operator==(const SocketIdentity&) const = default;
};

// nullopt: the socket does not exist.
std::optional<SocketIdentity> IdentityOf(const std::string& path);

}  // namespace railhead::kubelet
