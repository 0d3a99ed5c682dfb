// Whether this process sees mounts that the host makes later. A namespace that a runtime makes is a mount
// below /run/netns. A container sees such a mount only with mount propagation (HostToContainer).
//
// Without propagation the file is there, as the directory is the host's, but it looks like the remains of a
// deleted namespace. Source: Documentation/filesystems/sharedsubtree.rst; proc(5), mountinfo. Threads:
// thread-safe. Errors: those of reading /proc.
#pragma once

#include <string>
#include <string_view>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// Where runtimes have namespaces; /var/run is the same directory on most hosts.
inline constexpr const char* kNetnsDirectories[] = {"/run/netns", "/var/run/netns"};

// Whether the mount that has `directory` gets the host's mounts, by the text of /proc/self/mountinfo: its
// line is shared or a slave. True when no mount has it.
bool PropagatesTo(std::string_view mountinfo, const std::string& directory);

// The same of this process; also true in the mount namespace of process 1, where the host makes its mounts.
Result<bool> SeesMountsOfHost(const Root& root, const std::string& directory);

}  // namespace railhead
