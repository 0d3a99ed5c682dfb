// The names of our sockets: railhead-RESOURCE-TAG-N.sock, where TAG is PID-STARTED of the process and N
// counts its servers of the resource.
//
// A name tells other processes, also those of other versions, which servers are of one resource, and which of
// one process.
// A hash replaces the resource where the path would be too long for sun_path (unix(7)).
// Threads: pure functions. Errors: kInvalid for a directory in which no name fits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "netns/base/result.h"

namespace railhead::kubelet {

// sun_path without its final 0.
inline constexpr std::size_t kMaxSocketPath = 107;

std::string SocketName(const std::string& directory, const std::string& resource, const std::string& tag,
                       int number);

// An error at the start, since the path never becomes shorter.
Result<void> CheckSocketPath(const std::string& directory, const std::string& resource,
                             const std::string& tag);

// railhead-*.sock.
bool IsPluginSocket(std::string_view name);

// railhead-RESOURCE-PID-STARTED-N.sock without N.
std::string_view ProcessPart(std::string_view name);

// "railhead-RESOURCE".
std::string_view ResourcePart(std::string_view name);

}  // namespace railhead::kubelet
