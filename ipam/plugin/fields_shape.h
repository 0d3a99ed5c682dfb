// The fields of the `ipam` object of a network configuration, each in one line. They are ours, and the fields
// of host-local and whereabouts: a network that changes to Railhead changes only its "type".
// Each field, and where its meaning differs from the other plugins', is described in docs/reference/cni.md.
//
// Included by the files that read them or make their schema. Threads: pure descriptions.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "ipam/plugin/fields.h"
#include "netns/base/addresses.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"
#include "netns/json/record_forms.h"
#include "netns/json/record_read.h"

namespace railhead::ipam {

inline constexpr FieldRules kBlank{.blank = true};  // other plugins write "" for an absent value
inline constexpr FieldRules kSubnetField{.need = Need::kPresent, .hint = "such as 10.0.0.0/24"};

struct SubnetFields {
  std::optional<IpPrefix> subnet;
  std::optional<IpAddress> first;
  std::optional<IpAddress> last;
};

struct LinkFields {
  std::string ifname;
  PoolFields pool;
  SubnetFields range;
};

// whereabouts': "10.0.0.0/24" is the whole prefix, "10.0.0.10-10.0.0.20/24" a part.
struct ClusterRange : RangeFields {};

// whereabouts': in every answer, kept nowhere.
struct AlsoFields : CniIp {};

struct DnsFields {
  std::string domain;
  std::vector<std::string> nameservers;
  std::vector<std::string> search;
  std::vector<std::string> options;
};

// `ipam` as it is written.
struct IpamObject {
  std::string fabric;  // path; empty: not given
  PoolFields common;
  SubnetFields range;
  std::vector<RangeSetFields> ranges;
  std::optional<std::vector<LinkFields>> links;
  ClusterRange cluster_range;
  std::vector<ClusterRange> cluster_ranges;
  std::vector<AlsoFields> also;
  std::optional<int> node_slice;
  std::string dns;
  std::string resolv_conf;
};

// The capability of host-local's form.
struct RuntimeRanges {
  std::vector<RangeSetFields> ranges;
};

struct ClusterRangeForm : record::StringForm {
  static void Read(const JsonValue& json, ClusterRange& range);
};

// "/26" or "26".
struct NodeSliceForm : record::StringForm {
  static void Read(const JsonValue& json, IpamObject& ipam);
};

void CheckSets(const char* key, const std::vector<RangeSetFields>& sets, const record::Complain& complain);

}  // namespace railhead::ipam

template <>
struct railhead::Shape<railhead::ipam::SubnetFields> {
  using T = ipam::SubnetFields;
  static void List(auto& f) {
    f("subnet", &T::subnet, {.hint = ipam::kSubnetField.hint});
    f("rangeStart", &T::first, ipam::kBlank);
    f("rangeEnd", &T::last, ipam::kBlank);
  }
  static void Check(const T& range, const record::Complain& complain);
};

// Of host-local's `ranges`.
template <>
struct railhead::Shape<railhead::ipam::RangeFields> {
  using T = ipam::RangeFields;
  static void List(auto& f) {
    f("subnet", &T::subnet, ipam::kSubnetField);
    f("rangeStart", &T::first, ipam::kBlank);
    f("rangeEnd", &T::last, ipam::kBlank);
    f("gateway", &T::gateway, ipam::kBlank);
  }
  static void Check(const T& range, const record::Complain& complain);
};

template <>
struct railhead::Shape<railhead::ipam::ClusterRange> {
  using T = ipam::ClusterRange;
  static void ListRange(auto& f, const FieldRules& rules) {
    f("range_start", &T::first, ipam::kBlank);
    f("range_end", &T::last, ipam::kBlank);
    f.Form("range", ipam::ClusterRangeForm{}, rules);  // its own ends count before these
  }
  static void List(auto& f) {
    ListRange(f, ipam::kSubnetField);
    f("exclude", &T::exclude);
  }
};

template <>
struct railhead::Shape<railhead::ipam::RouteFields> {
  using T = ipam::RouteFields;
  static void List(auto& f) {
    f("dst", &T::destination, {.need = Need::kPresent, .hint = "such as 10.0.0.0/8"});
    f("gw", &T::gateway, ipam::kBlank);
    f("mtu", &T::mtu, {.min = 0, .max = kMaxMtu});
    f("advmss", &T::advmss, {.min = 0, .max = kMaxMtu});
    f("priority", &T::priority, {.min = 0});
    f("table", &T::table, {.min = 0});
    f("scope", &T::scope, {.min = 0, .max = std::numeric_limits<std::uint8_t>::max()});
  }
  static void Complete(T& route) { route.destination = route.destination.Network(); }
};

// The fields that choose the addresses, except subnets and ranges: the same in `ipam` and in an entry of
// `links`.
template <>
struct railhead::Shape<railhead::ipam::PoolFields> {
  using T = ipam::PoolFields;
  static void List(auto& f) {
    f("rail", &T::rail);
    f("gateway", &T::gateway, ipam::kBlank);
    f("vf", &T::vf, {.min = 0, .max = 65535});  // sriov_numvfs has 16 bits
    f("mac", &T::mac);
    f("exclude", &T::exclude);
    f("routes", &T::routes);
    f("reuseDelaySeconds", &T::reuse_delay_seconds, {.min = 0, .max = kMaxReuseDelaySeconds});
    f("minReuseDelaySeconds", &T::min_reuse_delay_seconds, {.min = 0, .max = kMaxReuseDelaySeconds});
  }
};

template <>
struct railhead::Shape<railhead::ipam::LinkFields> {
  using T = ipam::LinkFields;
  static void List(auto& f) {
    f("ifname", &T::ifname, {.need = Need::kRequired, .hint = "such as net1"});
    f.Part(&T::pool);
    f.Part(&T::range);
  }
  static void Check(const T& link, const record::Complain& complain);
};

template <>
struct railhead::Shape<railhead::ipam::AlsoFields> {
  using T = ipam::AlsoFields;
  static void List(auto& f) {
    f("address", &T::address, {.need = Need::kPresent, .hint = "such as 10.0.0.7/24"});
    f("gateway", &T::gateway, ipam::kBlank);
  }
};

template <>
struct railhead::Shape<railhead::ipam::DnsFields> {
  using T = ipam::DnsFields;
  static void List(auto& f) {
    f("domain", &T::domain);
    f("nameservers", &T::nameservers);
    f("search", &T::search);
    f("options", &T::options);
  }
};

template <>
struct railhead::Shape<railhead::ipam::IpamObject> {
  using T = ipam::IpamObject;
  static void List(auto& f) {
    f("fabric", &T::fabric);
    f.Part(&T::common);
    f.Part(&T::range);
    f("ranges", &T::ranges);
    f("links", &T::links, {.filled = true, .hint = "name at least one link"});
    f.Part(&T::cluster_range, [](auto& range) {
      Shape<ipam::ClusterRange>::ListRange(range, {.blank = true, .hint = "such as 10.0.0.0/24"});
    });
    f("ipRanges", &T::cluster_ranges);
    f("addresses", &T::also);
    f.Form("node_slice_size", ipam::NodeSliceForm{}, ipam::kBlank);
    f.Form("dns", record::CheckedRawForm<ipam::DnsFields, &T::dns>{});
    f("resolvConf", &T::resolv_conf);
    ListForeign(f);
  }
  static void Check(const T& ipam, const record::Complain& complain);

 private:
  // Fields that only DEL gets, and fields without effect: Railhead has no leader election, log file or
  // directory of files.
  static void ListForeign(auto& f) {
    for (const char* key :
         {"type", "inUse", "inUseConfirmed",
          // host-local's
          "dataDir",
          // whereabouts'
          "configuration_path", "datastore", "enable_overlapping_ranges", "etcd_ca_cert_file",
          "etcd_cert_file", "etcd_host", "etcd_key_file", "etcd_password", "etcd_username", "kubernetes",
          "leader_lease_duration", "leader_renew_deadline", "leader_retry_period", "log_file", "log_level",
          "network_name", "reconciler_cron_expression", "sleep_for_race"}) {
      f.Foreign(key);
    }
  }
};

template <>
struct railhead::Shape<railhead::ipam::RuntimeRanges> {
  using T = ipam::RuntimeRanges;
  static void List(auto& f) {
    f("ipRanges", &T::ranges);
    f.Foreign("*");  // capabilities for others
  }
  static void Check(const T& runtime, const record::Complain& complain) {
    ipam::CheckSets("ipRanges", runtime.ranges, complain);
  }
};
