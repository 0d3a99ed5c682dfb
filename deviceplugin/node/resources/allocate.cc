#include "deviceplugin/node/resources/allocate.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cni/nccl/nccl_config_files.h"
#include "cni/state/allocation.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/resource_variable.h"
#include "deviceplugin/node/resources/cdi_grant.h"
#include "deviceplugin/node/resources/device_info.h"
#include "deviceplugin/node/resources/grant.h"
#include "netns/base/mutex.h"
#include "netns/base/text.h"

namespace railhead::resources {
namespace {

using Json = nlohmann::json;

// The pool's members behind `ids`, which are sorted.
Result<std::vector<const PoolMember*>> FindMembers(const ResourcePool& pool,
                                                   const std::vector<std::string>& ids) {
  const std::string attempt = "allocating devices of " + pool.spec.resource + ": ";
  if (ids.empty()) return Fail(ErrorCode::kInvalid, attempt + "no device ids given");
  if (std::ranges::adjacent_find(ids) != ids.end()) {
    return Fail(ErrorCode::kInvalid, attempt + "the same device id is given twice");
  }
  std::vector<const PoolMember*> members;
  for (const std::string& id : ids) {
    const PoolMember* member = pool.Find(id);
    if (member == nullptr) {
      return Fail(ErrorCode::kInvalid,
                  std::string(attempt).append("'").append(id).append("' is not a device of this resource"),
                  "compare with railheadd --list: was the VF removed, or the configuration changed?");
    }
    members.push_back(member);
  }
  return members;
}

// Devices may share nodes: /dev/vfio/vfio, a VFIO group.
void AddNodes(const Grant& grant, AllocateAnswer* answer) {
  const auto add = [](const auto& node, auto* nodes) {
    if (!Contains(*nodes, node)) nodes->push_back(node);
  };
  for (const DeviceNode& node : grant.nodes) {
    if (node.host_path == node.container_path) {
      add(node.host_path, &answer->device_nodes);
    } else {
      add(node, &answer->renamed_nodes);
    }
  }
}

}  // namespace

Result<AllocateAnswer> Allocator::Allocate(const ResourcePool& pool, std::vector<std::string> ids) {
  std::ranges::sort(ids);
  const auto members = RH_TRY(FindMembers(pool, ids));
  const ResourceSpec& spec = pool.spec;
  AllocateAnswer answer;
  if (spec.late) {
    answer.cdi_devices.reserve(ids.size());
    for (const std::string& id : ids) answer.cdi_devices.push_back(CdiDeviceName(id));
    RH_TRY(WriteRecords(pool, ids));
    return answer;
  }
  Json info;
  bool rdma = false;
  for (const PoolMember* member : members) {
    const Grant grant = RH_TRY(GrantOf(root_, spec, *member));
    info[member->function.id] = grant.info;
    if (spec.cdi_nodes) {
      RH_TRY(WriteCdiGrant(root_, spec, *member, grant));
      answer.cdi_devices.push_back(CdiGrantName(spec, member->function.id));
      continue;
    }
    AddNodes(grant, &answer);
    rdma = rdma || RdmaNodesOf(spec, *member) != RdmaNodes::kNone;
    if (spec.device_nodes == DeviceNodeMode::kCdi)
      answer.cdi_devices.push_back(CdiDeviceName(member->function.id));
  }
  if (rdma && HostHasNode(root_, kRdmaCm)) answer.device_nodes.emplace_back(kRdmaCm);
  if (spec.device_nodes == DeviceNodeMode::kMount && spec.nccl_config == NcclConfigPolicy::kRequired) {
    // One file per device with the same content: a container can have only one of them at this path.
    answer.mounts.push_back({nccl::kNcclConfInContainer, nccl::DeviceNcclConfigPath(root_, ids.front())});
  }
  const std::string variable = PcideviceVariable(spec.resource);
  answer.envs[variable] = Join(ids, ",");
  answer.envs[variable + "_INFO"] = info.dump(-1, ' ', false, Json::error_handler_t::replace);

  for (const PoolMember* member : members) RH_TRY(WriteDeviceInfo(root_, spec, *member));
  RH_TRY(WriteRecords(pool, ids));
  return answer;
}

Result<void> Allocator::WriteRecords(const ResourcePool& pool, const std::vector<std::string>& ids) {
  const MutexLock lock(records_);
  // One generation for the whole request: records of the same siblings and generation belong together.
  std::uint64_t generation = 0;
  for (const std::string& id : ids) {
    const auto record = ReadAllocation(root_, id);
    // The new record needs only the generation of the old one, so a damaged one is ignored.
    if (record && *record) generation = std::max(generation, (*record)->generation);
  }
  std::vector<AllocationRecord> records;
  records.reserve(ids.size());
  for (const std::string& id : ids) {
    AllocationRecord record;
    record.resource = pool.spec.resource;
    record.device_id = id;
    record.siblings = ids;
    record.generation = generation + 1;
    record.nccl_config = pool.spec.nccl_config;
    record.device_nodes = pool.spec.device_nodes;
    records.push_back(std::move(record));
  }
  RH_TRY_WRAP(WriteAllocations(root_, records), "recording the allocation of " + Join(ids, ", "));
  return {};
}

}  // namespace railhead::resources
