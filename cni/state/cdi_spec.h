// CDI specs: what a container runtime adds to a container that asks for a
// device by name. ADD writes one per attached device after the move, because a
// uverbs node may not exist before (soft RoCE) or change (exclusive mode); the
// runtime reads it at CreateContainer.
//
// /run/cdi is everybody's: other programs and other railheadd processes have specs there. A record below our
// own /run/railhead holds the text of each spec that we wrote. It is written before the spec and removed
// after it. So only what has a record is removed, and what somebody else has removed or changed can be
// written again. (An annotation in the spec would be refused by CDI libraries before version 0.6.) Source:
// cncf-tags/container-device-interface SPEC.md, version 0.5.0. Threads: thread-safe for different devices.
// Processes: callers hold the device's lock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"

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
// Of the device or slot `name`. nullopt: there is none. kMalformed when it is not one of ours.
Result<std::optional<CdiDevice>> ReadCdiSpec(const Root& root, const std::string& name);
// Of the device or slot `name`, if a record says that it is ours. true: there was something.
Result<bool> RemoveCdiSpec(const Root& root, const std::string& name);

// File names of the specs that have a record.
Result<std::vector<std::string>> ListCdiRecords(const Root& root);
// The device or slot of an attachment whose spec has this file name; nullopt: it is none of an attachment.
std::optional<std::string> DeviceOfCdiSpec(const std::string& file_name);
// Whether the spec of that file name is as its record says; without a record there is nothing to say.
Result<bool> IsCdiSpecIntact(const Root& root, const std::string& file_name);
// Writes it again if it is missing or different. true: it was.
Result<bool> RepairCdiSpec(const Root& root, const std::string& file_name);
// Writes it again whatever it says, which makes runtimes read all specs. false: it has no record.
Result<bool> PublishCdiSpec(const Root& root, const std::string& file_name);

}  // namespace railhead
