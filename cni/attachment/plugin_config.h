// The network configuration of `railhead`, typed and validated; nothing is
// looked up and nothing touched.
//
// Fields and their meaning: docs/reference/cni.md. Absent is nullopt and differs
// from 0: an absent vlan is not touched, "vlan": 0 clears it.
// Threads: value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/call_permissions.h"
#include "cni/fabric/fabric.h"
#include "cni/protocol/plugin.h"
#include "cni/state/journal.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/json/record.h"
#include "netns/nl/link.h"

namespace railhead::attachment {

enum class HandoffWish : std::uint8_t { kAuto, kRequired, kOff };

// What a runtime says of this call by its capabilities.
struct RuntimeConfig {
  std::optional<std::string> device;
  std::optional<MacAddress> mac;
};

struct PluginConfig {
  // Which devices; see devices.h.
  std::string device_text;           // one, as given; may be no PCI address (DEL does not care)
  std::vector<std::string> devices;  // several, as given
  RuntimeConfig runtime;             // its device and MAC are in device_text and mac, once read
  std::string resource;              // only the pod's devices of this resource; empty: of all that are ours
  std::optional<std::string> rail;
  std::optional<std::string> ipam_rail;  // `rail` of the object `ipam`
  std::string fabric_path = kFabricPath;

  // Parts of a VLAN and of a rate, which the rail or a default completes.
  std::optional<int> vlan;
  std::optional<int> vlan_qos;
  std::optional<std::uint16_t> vlan_proto;   // 0x8100 or 0x88a8
  std::optional<std::uint32_t> min_tx_rate;  // Mbit/s
  std::optional<std::uint32_t> max_tx_rate;
  // All other settings of the VF and of its interface in the pod.
  AttachedDevice::Wanted wanted;

  std::optional<IpAddress> gateway;
  std::optional<std::vector<IpPrefix>> routes;
  std::optional<std::uint32_t> table;

  std::optional<bool> soft_roce;
  bool announce = true;
  std::optional<int> conflict_probe_ms;  // 0: off; absent: as the fabric says
  bool gateway_check = false;            // ADD fails without an answer of the gateway
  int wait_seconds = 20;                 // for carrier, port, GID, gateway
  int home_wait_seconds = 20;            // for a device whose last pod's DEL has not finished
  HandoffWish handoff = HandoffWish::kAuto;

  // The delegated IPAM plugin: absent (the rail decides), none ("ipam": {}), or a
  // type.
  bool ipam_given = false;
  std::string ipam_type;

  std::string prev_result;  // JSON text; empty: not chained
};

Result<PluginConfig> ReadPluginConfig(const CniRequest& request);

// Whether the author of a network, and the pod that asks, may have what ADD is asked for. What depends on the
// device itself is asked where that is known: the devices in devices.h, the rail and the MAC in plan.h.
// Errors: kPermission, with the key and where root allows it. Threads: pure.

Result<void> CheckPermissions(const CallPermissions& may, const CniRequest& request,
                              const PluginConfig& config);

}  // namespace railhead::attachment
