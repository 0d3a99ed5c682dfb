#include "netns/verbs/device.h"

#include <infiniband/verbs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "netns/base/text.h"

namespace railhead {
namespace {

struct ListFreer {
  void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};
using DeviceList = std::unique_ptr<ibv_device*, ListFreer>;

Result<DeviceList> AllDevices() {
  DeviceList list(ibv_get_device_list(nullptr));
  if (list) return list;
  Error error = SysError(errno, "listing the RDMA devices");
  if (error.code == ErrorCode::kUnsupported) error.hint = "load the kernel module ib_uverbs";
  return Fail(std::move(error));
}

std::vector<std::string> NamesOf(const DeviceList& list) {
  std::vector<std::string> names;
  for (ibv_device** device = list.get(); *device != nullptr; ++device) {
    names.emplace_back(ibv_get_device_name(*device));
  }
  std::ranges::sort(names);
  return names;
}

GidType TypeOf(const ibv_gid_entry& entry) {
  if (entry.gid_type == IBV_GID_TYPE_ROCE_V1) return GidType::kRoceV1;
  return entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? GidType::kRoceV2 : GidType::kInfiniband;
}

GidEntry EntryOf(const ibv_gid_entry& entry) {
  char name[IF_NAMESIZE] = {};
  if (entry.ndev_ifindex != 0) (void)if_indextoname(entry.ndev_ifindex, name);
  return {static_cast<int>(entry.gid_index), *IpAddress::FromBytes(entry.gid.raw, sizeof(entry.gid.raw)),
          TypeOf(entry), name};
}

}  // namespace

void VerbsDevice::Closer::operator()(ibv_context* context) const {
  (void)ibv_close_device(context);
}

Result<std::vector<std::string>> VerbsDevice::List() {
  return NamesOf(RH_TRY(AllDevices()));
}

Result<VerbsDevice> VerbsDevice::Open(const std::string& name) {
  const DeviceList list = RH_TRY(AllDevices());
  for (ibv_device** device = list.get(); *device != nullptr; ++device) {
    if (name != ibv_get_device_name(*device)) continue;
    ibv_context* context = ibv_open_device(*device);
    if (context != nullptr) return VerbsDevice(name, context);
    Error error = SysError(errno, "opening RDMA device " + name);
    if (error.code == ErrorCode::kPermission)
      error.hint = "run as root; the device cgroup must allow " + name;
    return Fail(std::move(error));
  }
  const std::string known = Join(NamesOf(list), ", ");
  return Fail(ErrorCode::kNotFound, "found no RDMA device " + name,
              known.empty() ? "no RDMA device can be seen from there: look at `rdma link` and /dev/infiniband"
                            : "those that can be seen from there: " + known);
}

Result<VerbsPort> VerbsDevice::Port() const {
  ibv_port_attr attributes{};
  const int failed = ibv_query_port(context_.get(), kVerbsPort, &attributes);
  if (failed != 0) return FailSys(failed, "querying port 1 of RDMA device " + name_);
  VerbsPort port;
  port.active = attributes.state == IBV_PORT_ACTIVE;
  port.state = ibv_port_state_str(attributes.state);
  port.ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.mtu = 128 << attributes.active_mtu;
  port.gid_slots = attributes.gid_tbl_len;
  return port;
}

Result<std::vector<GidEntry>> VerbsDevice::Gids() const {
  const VerbsPort port = RH_TRY(Port());
  std::vector<ibv_gid_entry> entries(static_cast<std::size_t>(std::max(port.gid_slots, 1)));
  const ssize_t count = ibv_query_gid_table(context_.get(), entries.data(), entries.size(), 0);
  if (count < 0) return FailSys(static_cast<int>(-count), "reading the GID table of RDMA device " + name_);
  entries.resize(static_cast<std::size_t>(count));
  std::vector<GidEntry> gids;
  for (const ibv_gid_entry& entry : entries) {
    if (entry.port_num == kVerbsPort) gids.push_back(EntryOf(entry));
  }
  return gids;
}

Result<GidEntry> VerbsDevice::Gid(int index) const {
  const std::vector<GidEntry> gids = RH_TRY(Gids());
  for (const GidEntry& gid : gids) {
    if (gid.index == index) return gid;
  }
  return Fail(
      ErrorCode::kNotFound,
      "port 1 of RDMA device " + name_ + " has no GID at index " + std::to_string(index),
      gids.empty() ? "its table is empty: has its interface an address?" : "it has " + Describe(gids));
}

}  // namespace railhead
