// The fields of fabric.json, one line each: name, range, and what to write instead of a refused value. The
// checks for contradictions are in fabric_reader.cc. What each field is for is in docs/reference/fabric.md.
//
// Included where the file is read or written, or its schema is made. Threads: pure descriptions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cni/fabric/fabric.h"
#include "cni/fabric/network_policy.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"
#include "netns/json/record_forms.h"
#include "netns/json/record_read.h"

namespace railhead {

// `pf`: a name or an address, several of them, or a position.
struct PfForm {
  static void Read(const JsonValue& json, Rail& rail);
  static nlohmann::ordered_json Write(const Rail& rail);
  static nlohmann::ordered_json Schema();
};

// `probeAddresses`: a range, or an object with each node's address.
struct ProbeAddressesForm {
  static void Read(const JsonValue& json, Rail& rail);
  static nlohmann::ordered_json Write(const Rail& rail);
  static nlohmann::ordered_json Schema();
};

// `routes`: a list, or "rails".
struct RoutesForm {
  static void Read(const JsonValue& json, Rail& rail);
  static nlohmann::ordered_json Write(const Rail& rail);
  static nlohmann::ordered_json Schema();
};

// `addresses.index`: only its `from` is read here. railheadd reads the rest
// (deviceplugin/services/node_index/index_config.h).
struct AddressIndexForm : record::RawForm<&Fabric::address_index> {
  static void Read(const JsonValue& json, Fabric& fabric);
};

inline constexpr FieldRules kPrefixField{.hint = "for example 10.100.0.0/24"};
inline constexpr const char* kStoreIsGone =
    R"(nodes lease no blocks any more: give the rail a nodeBlock, and write "index": {"from": "kubernetes"} or list the nodes in nodes)";
inline constexpr int kMaxConflictProbeMs = 10'000;  // RFC 5227's own times come to 9 s

template <>
struct Shape<Rail> {
  static void List(auto& f) {
    f("name", &Rail::name, {.need = Need::kRequired, .hint = "for example rail0"});
    f.Form("pf", PfForm{},
           {.need = Need::kRequired, .hint = "a PF's name, its PCI address, or its position"});
    f("vlan", &Rail::vlan, {.min = 0, .max = 4094});
    f("vlanQoS", &Rail::vlan_qos, {.min = 0, .max = 7});
    f("mtu", &Rail::mtu, {.min = kMinMtu, .max = kMaxMtu});
    f("subnet", &Rail::subnet, kPrefixField);
    f("nodeSubnet", &Rail::node_subnet, {.min = 1, .max = 127, .hint = "for example 31, or 64 of IPv6"});
    f("gateway", &Rail::gateway, {.hint = R"(for example "first")"});
    f.Form("routes", RoutesForm{});
    f("fabricSubnets", &Rail::fabric_subnets, kPrefixField);
    f("exclude", &Rail::exclude);
    f.Form("probeAddresses", ProbeAddressesForm{});
    f("nodeBlock", &Rail::node_block, {.min = 1, .max = 128});
    f("indices", &Rail::indices, {.hint = R"(for example "32-63")"});
    f("index", &Rail::index, {.min = 0, .max = INT32_MAX});
    f("nodeRanges", &Rail::node_ranges,
      {.filled = true, .or_one = true, .hint = "for example 10.100.0.10-10.100.0.99"});
    f("trafficClass", &Rail::traffic_class, {.min = 0, .max = 255});
    f("serviceLevel", &Rail::service_level, {.min = 0, .max = 15});
    f("softRoce", &Rail::soft_roce);
    f("spoofchk", &Rail::spoof_check);
    f("expectedSwitches", &Rail::expected_switches,
      {.filled = true, .or_one = true, .hint = R"(for example "leaf-*-1")"});
    f("table", &Rail::table, {.min = 1});
  }
  static void Check(const Rail& rail, const record::Complain& complain);
};

template <>
struct Shape<NcclTuning> {
  // Only values that NCCL accepts: with others it warns, clips them, or fails at the first connection.
  static void List(auto& f) {
    f("timeout", &NcclTuning::timeout, {.min = 1, .max = 31});  // 4.096 us * 2^n; 5 bits of the queue pair
    f("retryCount", &NcclTuning::retry_count, {.min = 0, .max = 7});
    f("qpsPerConnection", &NcclTuning::qps_per_connection, {.min = 1, .max = 128});
    f("fifoTrafficClass", &NcclTuning::fifo_traffic_class, {.min = 0, .max = 255});
    f("relaxedOrdering", &NcclTuning::relaxed_ordering, {.min = 0, .max = 2});
    f("crossNic", &NcclTuning::cross_nic, {.min = 0, .max = 2});
    f("splitDataOnQps", &NcclTuning::split_data_on_qps);
    f("adaptiveRouting", &NcclTuning::adaptive_routing);
    f("gdrLevel", &NcclTuning::gdr_level);
  }
};

template <>
struct Shape<NcclConfigOptions> {
  static void List(auto& f) {
    f("topology", &NcclConfigOptions::topology);
    f("stacks", &NcclConfigOptions::stacks);
    f("nccl", &NcclConfigOptions::nccl);
    f("env", &NcclConfigOptions::env);
  }
  static void Check(const NcclConfigOptions& options, const record::Complain& complain);
};

template <>
struct Shape<Pool> {
  static void List(auto& f) {
    f("resource", &Pool::resource, {.need = Need::kRequired, .hint = "for example railhead.io/roce"});
    f("rails", &Pool::rails, {.filled = true});
    f("device", &Pool::device);
    f("ncclConfig", &Pool::nccl_config);
    f("deviceNodes", &Pool::device_nodes);
    f("binding", &Pool::late, {.no = "early", .yes = "late"});
  }
};

template <>
struct Shape<NetworkRule> {
  static void List(auto& f) {
    f("networks", &NetworkRule::networks);
    f("namespaces", &NetworkRule::namespaces);
    f("allow", &NetworkRule::keys);
    f("devices", &NetworkRule::any_device, {.no = "allocated", .yes = "any"});
    f("ipam", &NetworkRule::ipam_types);
    f("sysctls", &NetworkRule::sysctls);
    f("fabrics", &NetworkRule::fabric_paths);
    f("resolvConf", &NetworkRule::resolv_confs);
  }
  static void Check(const NetworkRule& rule, const record::Complain& complain);
};

template <>
struct Shape<NetworkPolicy> {
  static void List(auto& f) {
    f("networks", &NetworkPolicy::rules);
    f("reset", &NetworkPolicy::reset);
  }
};

template <std::size_t kSize>
struct KeyText {
  // NOLINTNEXTLINE(google-explicit-constructor): a literal is written in its place
  constexpr KeyText(const char (&key)[kSize]) { std::copy_n(key, kSize, text.begin()); }
  [[nodiscard]] std::string ToString() const { return std::string(text.data()); }
  std::array<char, kSize> text{};
};

// A key of a group, whatever it holds: FabricBase reads it, merged over the base.
template <KeyText kKey>
struct OverrideForm {
  static constexpr bool kWritesNull = true;  // what the base has is removed

  static void Read(const JsonValue& json, NodeGroup& group) {
    group.overrides[kKey.ToString()] = json.raw()->dump();
  }
  static nlohmann::ordered_json Write(const NodeGroup& group) {
    const auto found = group.overrides.find(kKey.ToString());
    return found == group.overrides.end() ? nlohmann::ordered_json(nlohmann::ordered_json::value_t::discarded)
                                          : nlohmann::ordered_json::parse(found->second);
  }
  static nlohmann::ordered_json Schema() { return nlohmann::ordered_json::object(); }
};

template <>
struct Shape<NodeGroup> {
  static void List(auto& f) {
    f("name", &NodeGroup::name, {.need = Need::kRequired, .hint = "for example su1"});
    f("nodes", &NodeGroup::nodes,
      {.need = Need::kPresent, .filled = true, .or_one = true, .hint = R"(for example "gpu-[001-032]")"});
    f("indices", &NodeGroup::indices, {.hint = R"(for example "32-63")"});
    f.Form("rails", OverrideForm<"rails">{});
    f.Form("addresses", OverrideForm<"addresses">{});
    f.Form("rdmaMode", OverrideForm<"rdmaMode">{});
    f.Form("ncclConfig", OverrideForm<"ncclConfig">{});
    f.Form("pools", OverrideForm<"pools">{});
    f.Form("health", OverrideForm<"health">{});
    f.Form("provision", OverrideForm<"provision">{});
    f.Form("reachability", OverrideForm<"reachability">{});
    f.Form("nodeStatus", OverrideForm<"nodeStatus">{});
  }
  static void Check(const NodeGroup& group, const record::Complain& complain);
};

template <>
struct Shape<FabricNode> {
  static void List(auto& f) {
    f("name", &FabricNode::name, kPresentField);
    f("groups", &FabricNode::groups);
    f("indices", &FabricNode::indices);
    f("reserved", &FabricNode::reserved, kSparseField);
  }
};

template <>
struct Shape<Fabric> {
  static void List(auto& f) {
    f.Version(1, "this Railhead reads version 1");
    f("nodes", &Fabric::nodes, {.min = 0, .max = INT32_MAX});
    f("rails", &Fabric::rails, {.need = Need::kPresent, .filled = true, .hint = "name at least one rail"});
    f.Group("addresses", [](auto& addresses) {
      addresses("policy", &Fabric::address_policy);
      addresses("reuseDelaySeconds", &Fabric::reuse_delay_seconds, {.min = 0, .max = kMaxReuseDelaySeconds});
      addresses("minReuseDelaySeconds", &Fabric::min_reuse_delay_seconds,
                {.min = 0, .max = kMaxReuseDelaySeconds});
      addresses("conflictProbeMs", &Fabric::conflict_probe_ms, {.min = 0, .max = kMaxConflictProbeMs});
      addresses.Form("index", AddressIndexForm{});
      addresses.Gone("store", kStoreIsGone);
    });
    f("rdmaMode", &Fabric::rdma_exclusive, {.no = "shared", .yes = "exclusive"});
    f.Group("ncclConfig", [](auto& config) {
      config("mode", &Fabric::nccl_config);
      config.Part(&Fabric::nccl_config_options);
    });
    f("pools", &Fabric::pools);
    f("policy", &Fabric::policy);
    // Parts of railheadd read these, by Shapes of their own (deviceplugin/tools/railctl/config_sections.cc).
    f.Form("health", record::RawForm<&Fabric::health>{});
    f.Form("provision", record::RawForm<&Fabric::provision>{});
    f.Form("reachability", record::RawForm<&Fabric::reachability>{});
    f.Form("nodeStatus", record::RawForm<&Fabric::node_status>{});
    f("nodeGroups", &Fabric::node_groups);
    f("node", &Fabric::of_node);
  }
  static void Complete(Fabric& fabric);
  static void Check(const Fabric& fabric, const record::Complain& complain);
};

}  // namespace railhead
