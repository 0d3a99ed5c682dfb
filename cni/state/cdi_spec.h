// CDI specs: what a container runtime adds to a container that requests a device by name. ADD writes one spec
// per attached device after the move, since the uverbs node may not exist before (soft RoCE) or may change
// (exclusive mode). The runtime reads it at CreateContainer.
//
// Other programs and other railheadd processes also have specs in /run/cdi. So a record below /run/railhead
// stores the text of each spec that Railhead wrote. It is written before the spec and removed after it.
// Railhead removes only specs with a record, and writes a spec again that another program removed or changed.
// (CDI libraries before version 0.6 would refuse an annotation in the spec.) Source:
// cncf-tags/container-device-interface SPEC.md, version 0.5.0. Threads: thread-safe for different devices.
// Processes: callers hold the device's lock.
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

// Writes nothing if the file has the same text already: runtimes read all specs again after every change.
Result<void> WriteCdiSpec(const Root& root, const CdiDevice& device);
// For a device whose spec the device plugin writes.
Result<void> WriteCdiSpec(const Root& root, const std::string& path, const std::string& kind,
                          const CdiDevice& device);
// The spec of the device or slot `name`. nullopt: it has no spec. Errors: kMalformed if Railhead cannot have
// written the spec.
Result<std::optional<CdiDevice>> ReadCdiSpec(const Root& root, const std::string& name);
// Removes the spec of the device or slot `name` if it has a record. true: it had one.
Result<bool> RemoveCdiSpec(const Root& root, const std::string& name);

// File names of the specs that have a record.
Result<std::vector<std::string>> ListCdiRecords(const Root& root);
// The device or slot whose spec has this file name; nullopt: the spec is not of an attachment.
std::optional<std::string> DeviceOfCdiSpec(const std::string& file_name);
// Whether the spec of that file name equals its record. Also true without a record.
Result<bool> IsCdiSpecIntact(const Root& root, const std::string& file_name);
// Writes the spec again if it is missing or different. true: it was.
Result<bool> RepairCdiSpec(const Root& root, const std::string& file_name);
// Writes the spec again in any case, which makes runtimes read all specs. false: it has no record.
Result<bool> PublishCdiSpec(const Root& root, const std::string& file_name);

}  // namespace railhead
