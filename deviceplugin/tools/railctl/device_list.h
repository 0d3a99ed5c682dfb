// DeviceList: what this node offers to kubelet, which pod has which device, and what is not offered and why.
//
// Made from the node's snapshot and from NodeRecords. Ownership: values. Threads: pure, but
// for the journal's slots.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/tools/railctl/node_records.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead::railctl {

enum class OfferState : std::uint8_t {
  kFree,        // kubelet may allocate it
  kAllocated,   // kubelet has allocated it, and no attachment has it yet
  kAttaching,   // ADD has not finished
  kInUse,       // a pod has it
  kResetting,   // between two pods
  kUnreadable,  // an attachment has it whose journal entry cannot be read
  kUnhealthy,
  kDrained,
  kNotOffered,
};

struct OfferedDevice {
  std::string resource;  // "": it is in none
  std::string device;
  std::string rail;
  std::optional<int> numa_node;
  OfferState state = OfferState::kFree;
  std::string pod;  // "NAMESPACE/NAME"; its UID while the pod has no known attachment
  std::string reason;
  std::string pf_name;
  std::optional<int> vf;
  std::string driver;
  std::string rdma_device;
  std::string container;
  std::string slot;  // that is bound to it

  static void List(auto& f) {
    using Device = OfferedDevice;
    f("resource", &Device::resource, {.need = Need::kSparse, .column = "RESOURCE"});
    f("device", &Device::device, {.column = "DEVICE"});
    f("rail", &Device::rail, {.need = Need::kSparse, .column = "RAIL"});
    f("numaNode", &Device::numa_node, {.column = "NUMA"});
    f("state", &Device::state, {.column = "STATE"});
    f("pfName", &Device::pf_name, {.need = Need::kSparse, .column = "PF", .wide = kWide});
    f("vf", &Device::vf, {.column = "VF", .wide = kWide});
    f("driver", &Device::driver, {.need = Need::kSparse, .column = "DRIVER", .wide = kWide});
    f("rdmaDevice", &Device::rdma_device, {.need = Need::kSparse, .column = "RDMA DEVICE", .wide = kWide});
    f("slot", &Device::slot, {.need = Need::kSparse, .column = "SLOT", .wide = kWide});
    f("container", &Device::container, {.need = Need::kSparse, .column = "CONTAINER", .wide = kWide});
    f("pod", &Device::pod, {.need = Need::kSparse, .column = "POD"});
    f("reason", &Device::reason, {.need = Need::kSparse, .column = "REASON"});
  }
};

struct DeviceList {
  std::string config;  // the file that says what is offered
  std::vector<OfferedDevice> devices;
  std::vector<std::string> absent_rails;  // of some resource, without a PF on this node
  std::vector<std::string> warnings;

  [[nodiscard]] std::size_t Count(OfferState state) const;

  static void List(auto& f) {
    f("config", &DeviceList::config);
    f("devices", &DeviceList::devices);
    f("absentRails", &DeviceList::absent_rails);
    f("warnings", &DeviceList::warnings);
  }
};

// By resource and device; last what is in no resource.
DeviceList ListDevices(const Root& root, const NodeSnapshot& node, const NodeRecords& records);

}  // namespace railhead::railctl

template <>
struct railhead::Names<railhead::railctl::OfferState> {
  using enum railctl::OfferState;
  static constexpr std::array kAll = {std::pair{"free", kFree},
                                      std::pair{"allocated", kAllocated},
                                      std::pair{"attaching", kAttaching},
                                      std::pair{"in use", kInUse},
                                      std::pair{"resetting", kResetting},
                                      std::pair{"unreadable", kUnreadable},
                                      std::pair{"unhealthy", kUnhealthy},
                                      std::pair{"drained", kDrained},
                                      std::pair{"not offered", kNotOffered}};
};
