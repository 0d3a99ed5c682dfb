// CDI specs: what a container runtime adds to a container that asks for a
// device by name. ADD writes one per attached device after the move, because a
// uverbs node may not exist before (soft RoCE) or change (exclusive mode); the
// runtime reads it at CreateContainer.
// Source: cncf-tags/container-device-interface SPEC.md, version 0.5.0.
// Threads: thread-safe for different devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

inline constexpr const char* kCdiKind = "railhead.io/nic";

// "railhead.io/nic=0000:43:10.0"
inline std::string CdiDeviceName(const std::string& id) {
  return std::string(kCdiKind) + "=" + id;
}

struct CdiMount {
  std::string host_path;
  std::string container_path;
};

struct CdiNode {
  std::string host_path;
  std::string container_path;
};

struct CdiDevice {
  std::string name;                       // kubelet's id: a PCI address, or a slot
  std::vector<std::string> device_nodes;  // paths, the same inside and outside
  std::vector<CdiNode> renamed_nodes;     // another path inside than outside
  std::vector<CdiMount> mounts;           // read-only bind mounts
  std::vector<std::string> env;           // "NAME=value"
};

// Nothing is written when the file says so already: runtimes read all specs again after every change.
Result<void> WriteCdiSpec(const Root& root, const CdiDevice& device);
// Of a device that the device plugin describes by itself.
Result<void> WriteCdiSpec(const Root& root, const std::string& path, const std::string& kind,
                          const CdiDevice& device);
// nullopt: there is none. kMalformed when it is not one of ours.
Result<std::optional<CdiDevice>> ReadCdiSpec(const Root& root, const std::string& name);
Result<bool> RemoveCdiSpec(const Root& root, const std::string& name);

}  // namespace railhead
