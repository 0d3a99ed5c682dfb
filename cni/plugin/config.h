// The network configuration of `railhead`, typed and validated; nothing is
// looked up and nothing touched.
//
// Fields and their meaning: docs/interfaces.md. Absent is nullopt and differs
// from 0: an absent vlan is not touched, "vlan": 0 clears it.
// Threads: value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/skel/plugin.h"
#include "netns/base/ip_address.h"
#include "netns/base/mac_address.h"
#include "netns/base/result.h"
#include "netns/nl/link.h"
#include "netns/sys/pci_address.h"

namespace railhead {

enum class HandoffWish : std::uint8_t { kAuto, kRequired, kOff };

struct PluginConfig {
  std::string device_text;  // as given; may be no PCI address (DEL does not care)
  std::optional<std::string> rail;
  std::string fabric_path = kFabricPath;

  std::optional<int> vlan;
  std::optional<int> vlan_qos;
  std::optional<MacAddress> mac;
  std::optional<bool> spoofchk;
  std::optional<bool> trust;
  std::optional<VfLinkState> link_state;
  std::optional<std::uint32_t> min_tx_rate;  // Mbit/s
  std::optional<std::uint32_t> max_tx_rate;
  std::optional<int> mtu;

  std::optional<IpAddress> gateway;
  std::optional<std::vector<IpPrefix>> routes;
  std::optional<std::uint32_t> table;

  std::optional<bool> soft_roce;
  bool announce = true;
  int wait_seconds = 20;
  HandoffWish handoff = HandoffWish::kAuto;

  // The delegated IPAM plugin: absent (the rail decides), none ("ipam": {}), or a
  // type.
  bool ipam_given = false;
  std::string ipam_type;

  std::string prev_result;  // JSON text; empty: not chained
};

Result<PluginConfig> ReadPluginConfig(const CniRequest& request);

// device_text as an address; an error that names the field and the way out.
Result<PciAddress> DeviceOf(const PluginConfig& config);

// The configuration to hand to the IPAM plugin: the request's own, with the IPAM
// type filled in and "rail" for ours.
std::string IpamConfig(const CniRequest& request, const std::string& ipam_type, const std::string& rail);

inline constexpr const char* kOwnIpam = "railhead-ipam";

}  // namespace railhead
