// KubeletClient: the one call that a device plugin makes, Register on kubelet.sock.
//
// Every call dials anew: kubelet is asked again only after it went away.
// Threads: Register from one thread at a time, Cancel from any.
// Errors: kTimeout, kIo (nobody answers), kConflict (kubelet refuses; its words are in
// the message).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "netns/base/result.h"

namespace railhead {

class KubeletClient {
 public:
  explicit KubeletClient(std::string socket_path);
  ~KubeletClient();
  KubeletClient(const KubeletClient&) = delete;
  KubeletClient& operator=(const KubeletClient&) = delete;

  // `endpoint`: file name of the plugin's socket beside kubelet's. kubelet dials back
  // within the call (10 s at most), so the plugin must be serving already.
  // Given up, with kTimeout, when `worthwhile` no longer says so.
  Result<void> Register(const std::string& resource, const std::string& endpoint, bool pre_start_required,
                        std::chrono::milliseconds limit, const std::function<bool()>& worthwhile);
  // Ends a Register in progress, and all later ones, with kTimeout.
  void Cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead
