// The fields of a journal entry's file (record.h).
//
// Entries of another version are read as far as their fields are known.
// Threads: pure descriptions.
#pragma once

#include <string>
#include <utility>

#include "cni/state/journal.h"
#include "netns/json/record.h"

namespace railhead {

template <>
struct Names<Phase> {
  static constexpr std::array kAll = {std::pair{"planned", Phase::kPlanned}, std::pair{"done", Phase::kDone}};
};

template <>
struct Shape<VfState> {
  static void List(auto& f) {
    f("vf", &VfState::vf);
    f("mac", &VfState::mac, kRequiredField);
    f("vlan", &VfState::vlan);
    f("qos", &VfState::qos);
    f("proto", &VfState::vlan_proto);
    f("spoofchk", &VfState::spoofchk);
    f("trust", &VfState::trust);
    f("linkState", &VfState::link_state, {.min = 0, .max = 2});
    f("minTxRate", &VfState::min_tx_rate);
    f("maxTxRate", &VfState::max_tx_rate);
  }
};

template <>
struct Shape<VfChange::Vlan> {
  static void List(auto& f) {
    f("id", &VfChange::Vlan::id);
    f("qos", &VfChange::Vlan::qos);
    f("proto", &VfChange::Vlan::proto);
  }
};

template <>
struct Shape<VfChange::Rate> {
  static void List(auto& f) {
    f("min", &VfChange::Rate::min);
    f("max", &VfChange::Rate::max);
  }
};

template <>
struct Shape<VfChange> {
  static void List(auto& f) {
    f("mac", &VfChange::mac);
    f("vlan", &VfChange::vlan);
    f("spoofchk", &VfChange::spoofchk);
    f("trust", &VfChange::trust);
    f("linkState", &VfChange::link_state, {.min = 0, .max = 2});
    f("rate", &VfChange::rate);
  }
};

// "NAME=VALUE NAME=VALUE": as JSON members they would take most of the time that an entry takes.
template <>
struct TextForm<DeviceState> {
  static std::string Write(const DeviceState& settings);
  // kInvalid. A field that a newer version has written is kept: what is not known here cannot be compared.
  static Result<DeviceState> Read(std::string_view text);
};

template <>
struct Shape<Route> {
  static void List(auto& f) {
    f("dst", &Route::destination, kRequiredField);
    f("gw", &Route::gateway);
    f("src", &Route::source);
    f("table", &Route::table);
    f("metric", &Route::metric);
    f("scope", &Route::scope, {.min = 0, .max = 255});
    f("mtu", &Route::mtu, kSparseField);
    f("advmss", &Route::advmss, kSparseField);
  }
};

// They are a list: the order of writing is part of it.
template <>
struct Shape<Sysctl> {
  static void List(auto& f) {
    f("path", &Sysctl::path, kRequiredField);
    f("value", &Sysctl::value, kRequiredField);
  }
};

template <>
struct Shape<LinkTuning> {
  static void List(auto& f) {
    f("altNames", &LinkTuning::alt_names, kSparseField);
    f("alias", &LinkTuning::alias);
    f("txQueueLen", &LinkTuning::tx_queue_len);
    f("promisc", &LinkTuning::promiscuous);
    f("allmulti", &LinkTuning::all_multicast);
    f("sysctl", &LinkTuning::sysctls, kSparseField);
  }
};

template <>
struct Shape<AttachedLink> {
  static void List(auto& f) {
    f("device", &AttachedLink::device, kRequiredField);
    f("pf", &AttachedLink::pf);
    f("vf", &AttachedLink::vf);
    f("rail", &AttachedLink::rail);
    f("podName", &AttachedLink::pod_name);
    f("slot", &AttachedLink::slot, kSparseField);
    f("resource", &AttachedLink::resource, kSparseField);
    f("driver", &AttachedLink::driver);
    f("userSpace", &AttachedLink::user_space);
    f("parentless", &AttachedLink::parentless, kSparseField);
    f("hostName", &AttachedLink::host_name);
    f("hostMac", &AttachedLink::host_mac, kRequiredField);
    f("hostMtu", &AttachedLink::host_mtu);
    f("hostUp", &AttachedLink::host_up);
    f("hostAltNames", &AttachedLink::host_alt_names);
    f("hostAlias", &AttachedLink::host_alias);
    f("hostTxQueueLen", &AttachedLink::host_tx_queue_len);
    f("hostPromisc", &AttachedLink::host_promiscuous);
    f("hostAllmulti", &AttachedLink::host_all_multicast);
    f("hostSettings", &AttachedLink::host_settings);
    f("hostVf", &AttachedLink::host_vf);
    f("vfChange", &AttachedLink::vf_change);
    f("reboundFor", &AttachedLink::rebound_for, kSparseField);
    f("rdmaDevice", &AttachedLink::rdma_device);
    f("softRoce", &AttachedLink::soft_roce);
    f("rdmaMoved", &AttachedLink::rdma_moved);
    f("podMtu", &AttachedLink::pod_mtu);
    f("tuning", &AttachedLink::tuning);
    f("table", &AttachedLink::table);
    f("addresses", &AttachedLink::addresses);
    f("routes", &AttachedLink::routes);
    f("handoff", &AttachedLink::handoff);
    f("gidIndex", &AttachedLink::gid_index, {.min = 0});
    f("uverbs", &AttachedLink::uverbs);
    f("trafficClass", &AttachedLink::traffic_class, {.min = 0, .max = 255});
    f("serviceLevel", &AttachedLink::service_level, {.min = 0, .max = 15});
  }
};

template <>
struct Shape<AttachmentKey> {
  static void List(auto& f) {
    f("network", &AttachmentKey::network, kRequiredField);
    f("containerId", &AttachmentKey::container_id, kRequiredField);
    f("ifname", &AttachmentKey::ifname, kRequiredField);
  }
};

template <>
struct Shape<IpamCall> {
  static void List(auto& f) {
    f("ifname", &IpamCall::ifname, kRequiredField);
    f("config", &IpamCall::config, kRequiredField);
    f("refused", &IpamCall::refused, kSparseField);
  }
};

template <>
struct Shape<JournalEntry> {
  static void List(auto& f) {
    f.Version(1);
    f.Part(&JournalEntry::key);
    f("bootId", &JournalEntry::boot_id, kRequiredField);
    f("phase", &JournalEntry::phase, kRequiredField);
    f("netns", &JournalEntry::netns);
    f("netnsInode", &JournalEntry::netns_inode);
    f("since", &JournalEntry::since, {.min = 0});
    f("ipam", &JournalEntry::ipam_type);
    f("ipamCalls", &JournalEntry::ipam_calls);
    f("cniPath", &JournalEntry::cni_path);
    f("cniArgs", &JournalEntry::cni_args);
    f("handoffRequired", &JournalEntry::handoff_required);
    f("links", &JournalEntry::links);
  }
};

}  // namespace railhead
