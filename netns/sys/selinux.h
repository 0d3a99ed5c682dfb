// SELinux' labels of the files that Railhead writes for containers.
//
// On a host with SELinux a container (domain container_t) reads a mounted file only if its type is
// container_file_t. A file in /run gets the type of /run's files. Level s0 has no category, so the containers
// of every pod may read it. On a host without SELinux, and where the policy has no such type, nothing
// changes.
// Source: fs/xattr.c; security/selinux/hooks.c (selinux_inode_setxattr); container-selinux' container.te.
// Threads: thread-safe.
#pragma once

#include <string>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

inline constexpr const char* kContainerFileLabel = "system_u:object_r:container_file_t:s0";

// The kernel has SELinux, and its file system is mounted. A container sees it below the host's /sys.
bool HasSelinux(const Root& root);

// Lets containers read the file `path`. A right type stays as it is, with its level. kPermission: the policy
// forbids us to set it.
Result<void> LabelForContainers(const Root& root, const std::string& path);

// The label of `path`, if it keeps containers from reading the file. "": it does not, or cannot be read.
std::string LabelAgainstContainers(const Root& root, const std::string& path);

}  // namespace railhead
