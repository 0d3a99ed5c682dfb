// DeviceManager: kubelet's device manager as far as a device plugin can see it.
//
// Faithful to Kubernetes 1.36, pkg/kubelet/cm/devicemanager:
//
//   - At start it reads its checkpoint, makes the file DEPRECATION and removes every socket in its
//     directory. Then it serves kubelet.sock.
//   - Register dials the plugin back before it answers (10 s limit). It asks the plugin for its options and
//     ignores those in the request. Then it opens ListAndWatch.
//   - Each message replaces the whole list. When a stream ends, all devices of the resource become
//     unhealthy and none is allocatable. The capacity stays for 5 minutes.
//   - If two plugins have one name, the last one wins, but the first is not disconnected. Its lists still
//     count. Unless `mended_handover`, the end of its stream disconnects the *second* (handler.go,
//     runClient).
//   - It takes devices and resources of a request in random order. It reuses those of a pod's init
//     container. It drops unavailable devices from GetPreferredAllocation's answer. An error of that call or
//     of Allocate fails the pod.
//   - Allocations survive a restart by the checkpoint. A pod that is admitted again needs its resource
//     registered and its devices healthy.
//
// Not included: NUMA alignment unless `affinity` is given, DRA, pods' other resources.
//
// Stop() and Start() is a restart of kubelet. Threads: thread-safe; Options::at is called from many
// threads, without a lock held, and may block. Errors: kTimeout, kNotFound, kExhausted; an error of the
// plugin is kConflict with its status code and message.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "tests/support/kubelet/seen.h"
#include "tests/support/kubelet/trace.h"

namespace railhead::testing {

// Points of the protocol at which a test may want something to happen.
enum class Step {
  kRegisterCalled,    // nothing done yet
  kDialledBack,       // and the options are known
  kRegisterAnswered,  // the answer is about to go out
  kListTaken,         // a message of ListAndWatch has been processed
  kPreferring,        // about to call GetPreferredAllocation; the same for what follows
  kPreferred,         // it has answered
  kAllocating,
  kAllocated,
  kPreStarting,
  kPreStarted,
};
inline constexpr int kSteps = static_cast<int>(Step::kPreStarted) + 1;

struct KubeletOptions {
  unsigned seed = 1;  // of the random orders
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  std::function<void(Step, const std::string& resource)> at = {};
  std::function<void(TraceEvent)> record = {};
  // The end of a stream disconnects only its own client, as planned for later kubelets.
  bool repaired_handover = false;
  std::chrono::milliseconds register_delay{0};  // between the options and the answer
  std::chrono::milliseconds list_delay{0};      // between the answer and ListAndWatch
  bool deaf = false;                            // never reads what ListAndWatch sends
  // Of Register: the error text; "": accepts.
  std::function<std::string(const std::string& resource)> refuse = {};
  std::set<int> affinity = {};  // NUMA nodes that the topology manager has chosen; empty: no choice
};

struct Capacity {
  std::size_t capacity = 0;
  std::size_t allocatable = 0;
};

// What a pod asks for: counts by resource.
struct PodContainer {
  std::string name;
  std::map<std::string, std::size_t> wants;
  bool init = false;
};

class DeviceManager {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  explicit DeviceManager(std::string directory, KubeletOptions options = {});
  ~DeviceManager();
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;

  Result<void> Start();
  // Ends every stream and removes kubelet.sock, like a kubelet that stops.
  void Stop();
  // Ends every stream and keeps kubelet.sock, like a kubelet that is killed.
  void Kill();

  // Waits for at least `count` healthy devices, allocated or not.
  Result<std::vector<SeenDevice>> Devices(const std::string& resource, std::size_t count, Deadline deadline);
  // The present devices, including unhealthy ones; and the number of lists since the resource's last
  // registration.
  [[nodiscard]] std::vector<SeenDevice> Present(const std::string& resource) const;
  [[nodiscard]] int Lists(const std::string& resource) const;
  // The resource in the node's status; nullopt: it is not there.
  std::optional<Capacity> NodeStatus(const std::string& resource);
  // How often the resource was registered since this object was made.
  [[nodiscard]] int Registrations(const std::string& resource) const;
  // How often the end of a stream has disconnected the resource's plugin since then. Each time it registers
  // again.
  [[nodiscard]] int Drops(const std::string& resource) const;
  // The open ListAndWatch calls of all plugins that ever registered the resource.
  [[nodiscard]] int OpenStreams(const std::string& resource) const;
  // The socket of the plugin that has the resource, if these calls are all to it; "": another one, or none.
  [[nodiscard]] std::string OnlyServer(const std::string& resource) const;

  // Admits a pod: allocates for each container the devices that it does not have yet. By container, then
  // resource.
  using Allocations = std::map<std::string, std::map<std::string, SeenAllocation>>;
  Result<Allocations> Admit(const std::string& pod_uid, const std::vector<PodContainer>& containers);
  // Calls PreStartContainer for all devices of the pod's container.
  Result<void> PreStartPod(const std::string& pod_uid, const std::string& container);
  void RemovePod(const std::string& pod_uid);
  // By pod and container.
  [[nodiscard]] std::map<std::pair<std::string, std::string>, std::set<std::string>> Allocated(
      const std::string& resource) const;

  // Makes one call of a trace (GetPreferredAllocation, Allocate, PreStartContainer) with the call's ids. It
  // remembers nothing; Options::record gets the answer.
  void Say(const TraceEvent& event);

  // Admission without pods: each allocation is a pod of its own.
  Result<SeenAllocation> Allocate(const std::string& resource, std::size_t count);
  // Does what kubelet does after a pod's end.
  void Release(const std::string& resource, const std::vector<std::string>& ids);
  // Calls nothing if the plugin did not ask for PreStartContainer.
  Result<void> PreStart(const std::string& resource, const std::vector<std::string>& ids);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::testing
