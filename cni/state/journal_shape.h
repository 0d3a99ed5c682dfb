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

// "NAME=VALUE NAME=VALUE": JSON members would take most of the time that an entry takes.
template <>
struct TextForm<DeviceState> {
  static std::string Write(const DeviceState& settings);
  // Errors: kInvalid. Keeps the fields that a newer version has written, although they cannot be compared
  // here.
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

// A list, since the order of writing matters.
template <>
struct Shape<Sysctl> {
  static void List(auto& f) {
    f("path", &Sysctl::path, kRequiredField);
    f("value", &Sysctl::value, kRequiredField);
  }
};

template <>
struct Shape<AttachedDevice::Before> {
  using T = AttachedDevice::Before;
  static void List(auto& f) {
    f("driver", &T::driver);
    f("userSpace", &T::user_space);
    f("parentless", &T::parentless, kSparseField);
    f("name", &T::name);
    f("mac", &T::mac, kRequiredField);
    f("up", &T::up);
    f("altNames", &T::alt_names);
    f("link", &T::link);
    f("settings", &T::settings);
    f("vf", &T::vf);
  }
};

template <>
struct Shape<AttachedDevice::Requested> {
  using T = AttachedDevice::Requested;
  static void List(auto& f) {
    f("vf", &T::vf);
    f("link", &T::link);
    f("altNames", &T::alt_names, kSparseField);
    f("sysctls", &T::sysctls, kSparseField);
  }
};

template <>
struct Shape<AttachedDevice::Addressing> {
  using T = AttachedDevice::Addressing;
  static void List(auto& f) {
    f("table", &T::table);
    f("addresses", &T::addresses);
    f("routes", &T::routes);
  }
};

template <>
struct Shape<AttachedDevice::Rdma> {
  using T = AttachedDevice::Rdma;
  static void List(auto& f) {
    f("device", &T::device);
    f("soft", &T::soft);
    f("moved", &T::moved);
    f("gidIndex", &T::gid_index, {.min = 0});
    f("uverbs", &T::uverbs);
  }
};

template <>
struct Shape<AttachedDevice::Nccl> {
  using T = AttachedDevice::Nccl;
  static void List(auto& f) {
    f("enabled", &T::enabled);
    f("trafficClass", &T::traffic_class, {.min = 0, .max = 255});
    f("serviceLevel", &T::service_level, {.min = 0, .max = 15});
  }
};

template <>
struct Shape<AttachedDevice> {
  using T = AttachedDevice;
  static void List(auto& f) {
    f("device", &T::device, kRequiredField);
    f("pf", &T::pf);
    f("vf", &T::vf);
    f("rail", &T::rail);
    f("podName", &T::pod_name);
    f("slot", &T::slot, kSparseField);
    f("resource", &T::resource, kSparseField);
    f("before", &T::before, kRequiredField);
    f("requested", &T::requested);
    f("reboundFor", &T::rebound_for, kSparseField);
    f("addressing", &T::addressing);
    f("rdma", &T::rdma);
    f("nccl", &T::nccl);
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
    f("ncclConfigRequired", &JournalEntry::nccl_config_required);
    f("deviceInfoFile", &JournalEntry::device_info_file, kSparseField);
    f("devices", &JournalEntry::devices);
  }
};

}  // namespace railhead
