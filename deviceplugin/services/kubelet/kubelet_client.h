// KubeletClient: the one call that a device plugin makes, Register on kubelet.sock.
//
// All resources register at once. While plugins register, a kubelet that has just started admits the node's
// pods. It refuses pods whose resource is not there yet. Every call dials again: a call is only needed after
// kubelet went away.
// Threads: Register from one thread at a time, Cancel from any.
// Errors: kTimeout, kIo (no answer), kConflict (kubelet refuses; the message has its text).
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

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

// Dials kubelet's sockets. Internal to deviceplugin/services/kubelet.
// Threads: thread-safe.

// Connects when it is first used. It tries a new socket without a waiting time.
std::shared_ptr<grpc::Channel> DialUnix(const std::string& socket_path);

// PodResources: the devices that kubelet has allocated to pods, by its pod-resources API.
//
// It includes devices of DRA drivers, which the device manager's checkpoint (cni/state/kubelet_checkpoint.h)
// does not have. Since Kubernetes 1.34 it also includes those of a pod that is being admitted. Every call has
// a limit: kubelet answers from memory, but may be busy.
// Source: k8s.io/kubelet pkg/apis/podresources/v1.
// Ownership: one connection. The first call makes it, and the next call after an error makes a new one.
// Threads: thread-safe. Errors: kTimeout, kIo; kNotFound when kubelet does not serve it.

inline constexpr const char* kPodResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock";

// The devices that one container has of one resource, or of one DRA driver.
struct AllocatedDevices {
  std::string pod;  // NAMESPACE/NAME
  std::string container;
  std::string resource;  // of DRA: the driver's name
  std::vector<std::string> ids;
};

class PodResources {
 public:
  explicit PodResources(const Root& root);
  ~PodResources();
  PodResources(const PodResources&) = delete;
  PodResources& operator=(const PodResources&) = delete;

  Result<std::vector<AllocatedDevices>> List(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::kubelet
