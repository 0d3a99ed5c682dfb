// KubeletClient: the one call that a device plugin makes, Register on kubelet.sock.
//
// All resources register at once. While plugins register, a kubelet that has just started admits the node's
// pods. It refuses pods whose resource is not there yet. Every call dials again: a call is only needed after
// kubelet went away.
// Threads: Register from one thread at a time, Cancel from any.
// Errors: kTimeout, kIo (no answer), kConflict (kubelet refuses; the message has its text).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::kubelet {

class KubeletClient {
 public:
  explicit KubeletClient(std::string socket_path);
  ~KubeletClient();
  KubeletClient(const KubeletClient&) = delete;
  KubeletClient& operator=(const KubeletClient&) = delete;

  struct Registration {
    std::string resource;
    std::string endpoint;  // file name of the plugin's socket beside kubelet's
    bool pre_start_required = false;
    std::function<bool()> worthwhile;  // when it returns false, the call is given up with kTimeout
  };

  // One result for each. kubelet dials back within a call (10 s at most), so the plugins must
  // be serving already.
  std::vector<Result<void>> Register(const std::vector<Registration>& registrations,
                                     std::chrono::milliseconds limit);
  // Ends a Register in progress, and all later ones, with kTimeout.
  void Cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::kubelet
