// How kubelet's sockets are dialled. Internal to deviceplugin/services/kubelet.
// Threads: thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace railhead {

// Connects when it is first used; does not wait before it tries a socket that is new.
std::shared_ptr<grpc::Channel> DialUnix(const std::string& socket_path);

}  // namespace railhead
