// The fields of a network configuration of `railhead`, one line each. plugin_config.cc checks contradictions.
// docs/reference/cni.md explains each field.
//
// Include it where a configuration is read, or its schema is generated. Threads: pure descriptions.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "cni/attachment/plugin_config.h"
#include "cni/fabric/fabric_shape.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"
#include "netns/json/record_read.h"

namespace railhead::attachment {

// sriov-cni accepts capitals, too.
inline constexpr std::array kVlanProtos = {
    std::pair{"802.1q", kVlanProto8021q},   std::pair{"802.1ad", kVlanProto8021ad},
    std::pair{"802.1Q", kVlanProto8021q},   std::pair{"802.1AD", kVlanProto8021ad},
    std::pair{"802.1Ad", kVlanProto8021ad}, std::pair{"802.1aD", kVlanProto8021ad}};

// `sysctl`: an object whose names are paths with dots or with slashes, as in sysctl(8).
struct SysctlForm {
  static void Read(const JsonValue& json, PluginConfig& config);
  static nlohmann::ordered_json Schema();
};

// `ipam`: the IPAM plugin reads it; railhead itself reads only `type` and `rail`.
struct IpamForm {
  static void Read(const JsonValue& json, PluginConfig& config);
  static nlohmann::ordered_json Schema();
};

inline constexpr std::int64_t kMaxRate = 10'000'000;  // Mbit/s
inline constexpr int kMaxTimeoutSeconds = 200;        // kubelet gives a sandbox 4 minutes
inline constexpr FieldRules kOnOff{.no = "off", .yes = "on", .blank = true};
inline constexpr FieldRules kUnicastMac{.blank = true, .hint = "for example 02:00:00:00:00:01"};
inline constexpr FieldRules kBlank{.blank = true};

}  // namespace railhead::attachment

template <>
struct railhead::Names<railhead::attachment::NcclConfigMode> {
  using enum attachment::NcclConfigMode;
  static constexpr std::array kAll = {std::pair{"auto", kAuto}, std::pair{"required", kRequired},
                                      std::pair{"off", kOff}};
};

template <>
struct railhead::Shape<railhead::attachment::RuntimeConfig> {
  using T = attachment::RuntimeConfig;
  static void List(auto& f) {
    f("deviceID", &T::device, attachment::kBlank);
    f("mac", &T::mac, attachment::kUnicastMac);
    f("CNIDeviceInfoFile", &T::device_info_file, attachment::kBlank);
    for (const char* key : {"ips", "ipRanges"}) f.Foreign(key);  // railhead-ipam's
    f.Foreign("*");                                              // capabilities for others of the chain
  }
  static void Check(const T& runtime, const record::Complain& complain);
};

template <>
struct railhead::Shape<railhead::attachment::PluginConfig> {
  using T = attachment::PluginConfig;
  using Requested = AttachedDevice::Requested;
  static void List(auto& f) {
    // Multus puts the device into pciBusID, too.
    f("pciBusID", &T::device_text, attachment::kBlank);
    f("deviceID", &T::device_text, attachment::kBlank);
    f("devices", &T::devices);
    f("resourceName", &T::resource);
    f("runtimeConfig", &T::runtime);
    f("rail", &T::rail, attachment::kBlank);
    f("fabric", &T::fabric_path);
    ListVfSettings(f);
    ListTuning(f);
    f("gateway", &T::gateway, attachment::kBlank);
    f("routes", &T::routes, kPrefixField);
    f("table", &T::table, {.min = 1});
    f("softRoce", &T::soft_roce);
    f("announce", &T::announce);
    f("conflictProbeMs", &T::conflict_probe_ms, {.min = 0, .max = kMaxConflictProbeMs});
    f("requireGateway", &T::require_gateway);
    f("linkTimeoutSeconds", &T::link_timeout_seconds, {.min = 0, .max = attachment::kMaxTimeoutSeconds});
    f("previousDelTimeoutSeconds", &T::previous_del_timeout_seconds,
      {.min = 0, .max = attachment::kMaxTimeoutSeconds});
    f("ncclConfig", &T::nccl_config);
    f.Form("ipam", attachment::IpamForm{});
    f.Form("prevResult", record::RawForm<&T::prev_result>{});
    ListForeign(f);
  }
  static void Check(const T& config, const record::Complain& complain);
  // Names and rules of sriov-cni: absent stays unchanged, vlan 0 clears. Each affects more than the pod, and
  // needs a permission (CheckPermissions).
  static void ListVfSettings(auto& f) {
    f("vlan", &T::vlan, {.min = 0, .max = 4094});
    f("vlanQoS", &T::vlan_qos, {.min = 0, .max = 7});
    f.Form("vlanProto", record::WordForm<attachment::kVlanProtos, &T::vlan_proto>{}, attachment::kBlank);
    f("min_tx_rate", &T::min_tx_rate, {.min = 0, .max = attachment::kMaxRate});
    f("max_tx_rate", &T::max_tx_rate, {.min = 0, .max = attachment::kMaxRate});
    f.Part(&T::requested, [](auto& requested) {
      requested.Part(&Requested::vf, [](auto& vf) {
        vf("mac", &VfSettings::mac, attachment::kUnicastMac);
        vf("spoofchk", &VfSettings::spoofchk, attachment::kOnOff);
        vf("trust", &VfSettings::trust, attachment::kOnOff);
        vf("link_state", &VfSettings::link_state, attachment::kBlank);
      });
    });
  }

 private:
  // What the plugins `tuning` and `sbr` are chained for, under their names.
  static void ListTuning(auto& f) {
    f.Part(&T::requested, [](auto& requested) {
      requested.Part(&Requested::link, [](auto& link) {
        link("mtu", &LinkSettings::mtu, {.min = kMinMtu, .max = kMaxMtu});
        link("alias", &LinkSettings::alias);
        link("txQLen", &LinkSettings::tx_queue_len, {.min = 0, .max = 1'000'000});
        link("promisc", &LinkSettings::promiscuous);
        link("allmulti", &LinkSettings::all_multicast);
      });
      requested("altNames", &Requested::alt_names);
    });
    f.Form("sysctl", attachment::SysctlForm{});
  }
  // What belongs to the runtime or to other plugins of the chain, and what sriov-cni's users have in their
  // configurations for its log.
  static void ListForeign(auto& f) {
    for (const char* key :
         {"cniVersion", "cniVersions", "name", "type", "args", "capabilities", "dns", "disableCheck",
          "disableGC", "loadOnlyInlinedPlugins", "logLevel", "logFile", "cni.dev/*"}) {
      f.Foreign(key);
    }
  }
};
