// Sockets that earlier processes left behind: railhead-*.sock without a listener.
//
// A killed process removes none, and its names are never used again (socket_name.h).
// Threads: any. Errors: what cannot be read or removed stays.
#pragma once

#include <string>
#include <vector>

namespace railhead::kubelet {

// Returns the names of those that it has removed.
std::vector<std::string> RemoveStaleSockets(const std::string& directory);

}  // namespace railhead::kubelet
