// Dials kubelet's sockets. Internal to deviceplugin/services/kubelet.
// Ownership: the caller has the channel. Threads: thread-safe. Errors: those of the calls on the channel.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace railhead::kubelet {

// Connects when it is first used. It tries a new socket without a waiting time.
std::shared_ptr<grpc::Channel> DialUnix(const std::string& socket_path);

}  // namespace railhead::kubelet
