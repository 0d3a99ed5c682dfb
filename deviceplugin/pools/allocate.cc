#include "deviceplugin/pools/allocate.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "cni/state/allocation.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/handoff.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead {
namespace {

using Json = nlohmann::json;

constexpr const char* kRdmaCm = "/dev/infiniband/rdma_cm";

std::string DevicePath(const std::string& name) {
  return "/dev/infiniband/" + name;
}

// The pool's members behind `ids`, which are sorted.
Result<std::vector<const PoolMember*>> FindMembers(const ResourcePool& pool,
                                                   const std::vector<std::string>& ids) {
  const std::string attempt = "allocating devices of " + pool.spec.resource + ": ";
  if (ids.empty()) return Fail(ErrorCode::kInvalid, attempt + "no device ids given");
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) {
    return Fail(ErrorCode::kInvalid, attempt + "the same device id is given twice");
  }
  std::vector<const PoolMember*> members;
  for (const std::string& id : ids) {
    const PoolMember* member = pool.Find(id);
    if (member == nullptr) {
      return Fail(ErrorCode::kInvalid,
                  std::string(attempt).append("'").append(id).append("' is no device of this resource"),
                  "compare with railheadd --list, and restart railheadd after VFs were made or removed");
    }
    members.push_back(member);
  }
  return members;
}

Result<RdmaCharDevices> ReadNodes(const Root& root, const NicFunction& function) {
  auto nodes = RH_TRY(CharDevicesOf(root, function.address));
  if (!nodes.uverbs) {
    return Fail(ErrorCode::kConflict,
                "the RDMA device of " + function.id + " has no uverbs device node in sysfs",
                "check that ib_uverbs is loaded, that the device is bound to its driver, and that "
                "`rdma system` says netns shared: in exclusive mode use \"delivery\": \"cdi\"");
  }
  return nodes;
}

// The device's part of PCIDEVICE_..._INFO, by sriov-network-device-plugin's names.
Json InfoOf(const ResourceSpec& spec, const NicFunction& function, const RdmaCharDevices& nodes,
            bool rdma_cm) {
  Json info;
  info["generic"]["deviceID"] = function.id;
  if (nodes.uverbs) {
    Json& rdma = info["rdma"];
    rdma["uverbs"] = DevicePath(*nodes.uverbs);
    if (nodes.umad) rdma["umad"] = DevicePath(*nodes.umad);
    if (nodes.issm) rdma["issm"] = DevicePath(*nodes.issm);
    if (rdma_cm) rdma["rdma_cm"] = kRdmaCm;
    if (!function.rdma_device.empty()) rdma["rdma_dev"] = function.rdma_device;
  }
  for (const std::string& key : {std::string("*"), function.id}) {
    const auto extra = spec.additional_info.find(key);
    if (extra == spec.additional_info.end()) continue;
    for (const auto& [name, value] : extra->second) info["extra"][name] = value;
  }
  return info;
}

void AddNodes(RdmaNodes wanted, const RdmaCharDevices& nodes, std::vector<std::string>* paths) {
  if (nodes.uverbs) paths->push_back(DevicePath(*nodes.uverbs));
  if (wanted != RdmaNodes::kAll) return;
  if (nodes.umad) paths->push_back(DevicePath(*nodes.umad));
  if (nodes.issm) paths->push_back(DevicePath(*nodes.issm));
}

Result<void> WriteDeviceInfo(const Root& root, const ResourcePool& pool, const NicFunction& function) {
  const std::string path = DeviceInfoPath(root, pool.spec.resource, function.id);
  nlohmann::ordered_json json;
  json["type"] = "pci";
  json["version"] = "1.1.0";
  json["pci"]["pci-address"] = function.id;
  if (!function.rdma_device.empty()) json["pci"]["rdma-device"] = function.rdma_device;
  if (function.is_vf) json["pci"]["pf-pci-address"] = function.pf.ToString();
  RH_TRY(MakeDirectories(path.substr(0, path.rfind('/'))));
  return WriteAtomic(path, json.dump(), Sync::kVolatile, 0444);
}

}  // namespace

Result<AllocateAnswer> Allocator::Allocate(const ResourcePool& pool, std::vector<std::string> ids) {
  std::sort(ids.begin(), ids.end());
  const auto members = RH_TRY(FindMembers(pool, ids));
  const ResourceSpec& spec = pool.spec;
  const bool rdma_cm = spec.rdma_nodes != RdmaNodes::kNone && Exists(root_.Path(kRdmaCm));

  AllocateAnswer answer;
  Json info;
  for (const PoolMember* member : members) {
    RdmaCharDevices nodes;
    if (spec.rdma_nodes != RdmaNodes::kNone) nodes = RH_TRY(ReadNodes(root_, member->function));
    AddNodes(spec.rdma_nodes, nodes, &answer.device_nodes);
    info[member->function.id] = InfoOf(spec, member->function, nodes, rdma_cm);
    if (spec.delivery == Delivery::kCdi) answer.cdi_devices.push_back(CdiDeviceName(member->function.id));
  }
  if (rdma_cm) answer.device_nodes.emplace_back(kRdmaCm);
  if (spec.delivery == Delivery::kMount && spec.handoff == HandoffPolicy::kRequired) {
    // One file per device with the same content: a container can have only one of
    // them at this path.
    answer.mounts.push_back({kNcclConfInContainer, DeviceHandoffPath(root_, ids.front())});
  }
  const std::string variable = PcideviceVariable(spec.resource);
  answer.envs[variable] = Join(ids, ",");
  answer.envs[variable + "_INFO"] = info.dump();

  for (const PoolMember* member : members) RH_TRY(WriteDeviceInfo(root_, pool, member->function));
  RH_TRY(WriteRecords(pool, ids));
  return answer;
}

Result<void> Allocator::WriteRecords(const ResourcePool& pool, const std::vector<std::string>& ids) {
  const std::lock_guard<std::mutex> lock(records_);
  // One generation for all of a request: records of the same siblings and generation
  // belong together.
  std::uint64_t generation = 0;
  for (const std::string& id : ids) {
    const auto record = ReadAllocation(root_, id);
    // A damaged record says nothing that the new one would need but its generation.
    if (record && *record) generation = std::max(generation, (*record)->generation);
  }
  for (const std::string& id : ids) {
    AllocationRecord record;
    record.resource = pool.spec.resource;
    record.device_id = id;
    record.siblings = ids;
    record.generation = generation + 1;
    record.handoff = pool.spec.handoff;
    record.delivery = pool.spec.delivery;
    RH_TRY_WRAP(WriteAllocation(root_, record), "recording the allocation of " + id);
  }
  return {};
}

std::string PcideviceVariable(const std::string& resource) {
  std::string name = "PCIDEVICE_";
  for (const char c : resource) {
    name += c == '.' || c == '/' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string DeviceInfoPath(const Root& root, const std::string& resource, const std::string& device_id) {
  std::string name = resource + "-" + device_id;
  std::replace(name.begin(), name.end(), '/', '-');
  return root.Path("/var/run/k8s.cni.cncf.io/devinfo/dp/") + name + "-device.json";
}

}  // namespace railhead
