// The network configuration of `railhead`, typed and validated. Reading it looks nothing up and changes
// nothing.
//
// Fields and their meaning: docs/reference/cni.md. Absent is nullopt and differs from 0: without `vlan` the
// VLAN stays unchanged, "vlan": 0 clears it. Threads: value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/journal.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::attachment {

enum class NcclConfigMode : std::uint8_t { kAuto, kRequired, kOff };

// What the runtime sets by capabilities (runtimeConfig).
struct RuntimeConfig {
  std::optional<std::string> device;
  std::optional<MacAddress> mac;
  std::optional<std::string> device_info_file;
};

struct PluginConfig {
  // Which devices; see devices.h.
  std::string device_text;           // one, unparsed; need not be a PCI address (DEL ignores it)
  std::vector<std::string> devices;  // several, unparsed
  RuntimeConfig runtime;             // its device and MAC are copied to device_text and mac
  std::string resource;              // only the pod's devices of this resource; empty: of all of Railhead's
  std::optional<std::string> rail;
  std::optional<std::string> ipam_rail;  // `rail` of the object `ipam`
  std::string fabric_path = kFabricPath;

  // Parts of a VLAN and of a rate; the rail or a default completes them.
  std::optional<int> vlan;
  std::optional<int> vlan_qos;
  std::optional<std::uint16_t> vlan_proto;   // 0x8100 or 0x88a8
  std::optional<std::uint32_t> min_tx_rate;  // Mbit/s
  std::optional<std::uint32_t> max_tx_rate;
  // All other settings of the VF and of its interface in the pod.
  AttachedDevice::Requested requested;

  std::optional<IpAddress> gateway;
  std::optional<std::vector<IpPrefix>> routes;
  std::optional<std::uint32_t> table;

  std::optional<bool> soft_roce;
  bool announce = true;
  std::optional<int> conflict_probe_ms;   // 0: off; absent: the fabric's
  bool require_gateway = false;           // ADD fails without an answer of the gateway
  int link_timeout_seconds = 20;          // for carrier, port, GID, gateway
  int previous_del_timeout_seconds = 20;  // for a device whose last pod's DEL has not finished
  NcclConfigMode nccl_config = NcclConfigMode::kAuto;

  // The delegated IPAM plugin: absent (the rail decides), none ("ipam": {}), or a type.
  bool has_ipam = false;
  std::string ipam_type;

  std::string prev_result;  // JSON text; empty: not chained
};

Result<PluginConfig> ReadPluginConfig(const CniRequest& request);

}  // namespace railhead::attachment
