// DeviceManager: kubelet's device manager as far as a device plugin can see it.
//
// Faithful to Kubernetes 1.36, pkg/kubelet/cm/devicemanager:
//   - at start it removes every socket in its directory, then serves kubelet.sock;
//   - Register dials the plugin back before it answers (10 s limit), asks for its
//     options (those in the request are not used) and then opens ListAndWatch;
//   - each message replaces the whole list; when the stream ends all devices of the
//     resource become unhealthy, and the resource stays known;
//   - of two plugins with one name the last wins;
//   - Allocate gets its ids in random order; GetPreferredAllocation is asked only when
//     there is a choice, its answer cut down to what is available; an error of it fails
//     the request;
//   - what was allocated stays so over a restart (kubelet's checkpoint).
// A `generation` is one life of kubelet: Stop() and Start() is a restart.
// Threads: thread-safe. Errors: kTimeout, kNotFound, kExhausted; what the plugin answers
// is kConflict with its status code and message.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::testing {

struct SeenDevice {
  std::string id;
  bool healthy = false;
  std::vector<int> numa_nodes;
};

// ContainerAllocateResponse.
struct SeenAllocation {
  struct Mount {
    std::string container_path;
    std::string host_path;
    bool read_only = false;
  };
  struct Device {
    std::string container_path;
    std::string host_path;
    std::string permissions;
  };
  std::vector<std::string> ids;  // sorted
  std::map<std::string, std::string> envs;
  std::vector<Mount> mounts;
  std::vector<Device> devices;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> cdi_devices;
};

class DeviceManager {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  explicit DeviceManager(std::string directory);
  ~DeviceManager();
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;

  Result<void> Start();
  // Ends every stream and removes kubelet.sock, as a kubelet that stops.
  void Stop();

  // Waits for at least `count` healthy devices, allocated or not.
  Result<std::vector<SeenDevice>> Devices(const std::string& resource, std::size_t count, Deadline deadline);
  // As of now, also those that are unhealthy; and how many lists have come on this stream.
  [[nodiscard]] std::vector<SeenDevice> Present(const std::string& resource) const;
  [[nodiscard]] int Lists(const std::string& resource) const;
  Result<SeenAllocation> Allocate(const std::string& resource, std::size_t count);
  // What kubelet does when the pod is gone.
  void Release(const std::string& resource, const std::vector<std::string>& ids);
  // Nothing is called when the plugin did not ask for it.
  Result<void> PreStart(const std::string& resource, const std::vector<std::string>& ids);
  // How often the resource was registered since this object was made.
  [[nodiscard]] int Registrations(const std::string& resource) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::testing
