// What kubelet knows of a device and of an allocation.
// Threads: values.
#pragma once

#include <map>
#include <string>
#include <vector>

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
  std::string message;  // as received
};

}  // namespace railhead::testing
