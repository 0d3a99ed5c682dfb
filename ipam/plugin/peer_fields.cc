#include "ipam/plugin/peer_fields.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

namespace railhead {
namespace {

constexpr const char* kPeerField = "network configuration: ";
// Of host-local, then of whereabouts.
constexpr const char* kWithoutEffect[] = {"dataDir",
                                          "configuration_path",
                                          "datastore",
                                          "enable_overlapping_ranges",
                                          "etcd_ca_cert_file",
                                          "etcd_cert_file",
                                          "etcd_host",
                                          "etcd_key_file",
                                          "etcd_password",
                                          "etcd_username",
                                          "kubernetes",
                                          "leader_lease_duration",
                                          "leader_renew_deadline",
                                          "leader_retry_period",
                                          "log_file",
                                          "log_level",
                                          "network_name",
                                          "reconciler_cron_expression",
                                          "sleep_for_race"};

// "10.0.0.7/24": all of the prefix; "10.0.0.10-10.0.0.20/24": these of it.
std::optional<RangeFields> ParseRange(const std::string& text) {
  const auto dash = text.find('-');
  const auto prefix = IpPrefix::Parse(dash == std::string::npos ? text : text.substr(dash + 1));
  if (!prefix) return std::nullopt;
  RangeFields range;
  range.subnet = prefix->Network();
  range.of_cluster = true;
  if (dash == std::string::npos) return range;
  range.first = IpAddress::Parse(text.substr(0, dash));
  range.last = prefix->address;
  if (!range.first || !range.subnet.Contains(*range.first)) return std::nullopt;
  return range;
}

// `range` with `range_start` and `range_end`; nullopt without a range.
std::optional<RangeFields> ReadWhereaboutsRange(JsonReader& reader) {
  const auto text = reader.String("range");
  const auto first = ReadAddress(reader, "range_start");
  const auto last = ReadAddress(reader, "range_end");
  if (!text) return std::nullopt;
  auto range = ParseRange(*text);
  if (!range) {
    reader.Fail("range", "'" + *text + "' is no range",
                "write 10.0.0.0/24, or 10.0.0.10-10.0.0.20/24 for these of it");
    return std::nullopt;
  }
  range->where = kPeerField + reader.pointer();
  if (!range->first) range->first = first;
  if (!range->last) range->last = last;
  return range;
}

std::vector<RangeSetFields> ReadWhereaboutsSets(JsonReader& ipam) {
  std::vector<RangeSetFields> sets;
  if (auto range = ReadWhereaboutsRange(ipam); range) sets.push_back({std::move(*range)});
  for (JsonReader& entry : ipam.Objects("ipRanges")) {
    auto range = ReadWhereaboutsRange(entry);
    auto exclude = ReadExclude(entry, "exclude");
    if (!range && !entry.Has("range")) entry.Fail("range", "is missing", "such as 10.0.0.0/24");
    entry.Close();
    if (!range) continue;
    range->exclude = std::move(exclude);
    sets.push_back({std::move(*range)});
  }
  return sets;
}

std::vector<CniIp> ReadAddresses(JsonReader& ipam) {
  std::vector<CniIp> addresses;
  for (JsonReader& entry : ipam.Objects("addresses")) {
    CniIp ip;
    if (const auto prefix = ReadPrefix(entry, "address"); prefix) ip.address = *prefix;
    if (!entry.Has("address")) entry.Fail("address", "is missing", "such as 10.0.0.7/24");
    ip.gateway = ReadAddress(entry, "gateway");
    entry.Close();
    addresses.push_back(ip);
  }
  return addresses;
}

// "/26" or "26"
std::optional<int> ReadNodeSlice(JsonReader& ipam) {
  const auto text = ipam.String("node_slice_size");
  if (!text || text->empty()) return std::nullopt;
  const char* begin = text->data() + (text->front() == '/' ? 1 : 0);
  const char* end = text->data() + text->size();
  int length = 0;
  const auto [stop, error] = std::from_chars(begin, end, length);
  if (error == std::errc() && stop == end && length >= 1 && length <= 128) return length;
  ipam.Fail("node_slice_size", "'" + *text + "' is no prefix length", "such as /26");
  return std::nullopt;
}

std::string ReadDns(JsonReader& ipam) {
  auto dns = ipam.Object("dns");
  if (!dns) return {};
  (void)dns->String("domain");
  for (const char* key : {"nameservers", "search", "options"}) (void)dns->Strings(key);
  dns->Close();
  return ipam.Raw("dns")->dump();
}

}  // namespace

PeerFields ReadPeerFields(JsonReader& ipam) {
  PeerFields fields;
  fields.sets = ReadWhereaboutsSets(ipam);
  fields.addresses = ReadAddresses(ipam);
  fields.node_slice = ReadNodeSlice(ipam);
  fields.dns = ReadDns(ipam);
  fields.resolv_conf = ipam.String("resolvConf").value_or("");
  if (!fields.dns.empty() && !fields.resolv_conf.empty()) {
    ipam.Fail("resolvConf", "cannot be given together with 'dns'", "remove one of the two");
  }
  for (const char* key : kWithoutEffect) ipam.Ignore(key);
  return fields;
}

namespace {

constexpr const char* kRangeField = "network configuration: ";

RangeFields ReadRangeOfSet(JsonReader& entry) {
  auto range = ReadRange(entry);
  if (!range && !entry.Has("subnet")) entry.Fail("subnet", "is missing", "such as 10.0.0.0/24");
  const auto gateway = ReadAddress(entry, "gateway");
  entry.Close();
  if (!range) return {};
  range->gateway = gateway;
  range->first_is_gateway = true;
  return std::move(*range);
}

}  // namespace

std::optional<IpAddress> ReadAddress(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  // Peers' configurations have "" where there is none.
  if (!text || text->empty()) return std::nullopt;
  auto address = IpAddress::Parse(*text);
  if (!address) reader.Fail(key, "'" + *text + "' is not an IP address");
  return address;
}

std::optional<IpPrefix> ReadPrefix(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  if (!text) return std::nullopt;
  auto prefix = IpPrefix::Parse(*text);
  if (!prefix)
    reader.Fail(key, "'" + *text + "' is not a prefix", "write ADDRESS/LENGTH, such as 10.0.0.0/24");
  return prefix;
}

std::vector<AddressRange> ReadExclude(JsonReader& reader, const std::string& key) {
  std::vector<AddressRange> exclude;
  const auto texts = reader.Strings(key);
  for (std::size_t i = 0; texts && i < texts->size(); ++i) {
    auto range = AddressRange::Parse((*texts)[i], "item " + std::to_string(i));
    if (range) {
      exclude.push_back(*range);
    } else {
      reader.Fail(key, range.error().message, range.error().hint);
    }
  }
  return exclude;
}

std::optional<RangeFields> ReadRange(JsonReader& reader) {
  RangeFields range;
  range.where = kRangeField + reader.pointer();
  const auto subnet = ReadPrefix(reader, "subnet");
  if (subnet && subnet->Network() != *subnet) {
    reader.Fail("subnet", "'" + subnet->ToString() + "' has host bits set",
                "write " + subnet->Network().ToString());
  }
  range.first = ReadAddress(reader, "rangeStart");
  range.last = ReadAddress(reader, "rangeEnd");
  if (!subnet) return std::nullopt;
  range.subnet = *subnet;
  return range;
}

std::vector<RangeSetFields> ReadRangeSets(JsonReader& reader, const std::string& key) {
  std::vector<RangeSetFields> sets;
  for (auto& list : reader.ObjectLists(key)) {
    RangeSetFields set;
    for (JsonReader& entry : list) set.push_back(ReadRangeOfSet(entry));
    if (set.empty())
      reader.Fail(key, "has an empty set", R"(write a list of lists: [[{"subnet": "10.0.0.0/24"}]])");
    for (const RangeFields& range : set) {
      if (range.subnet.address.IsV4() != set.front().subnet.address.IsV4()) {
        reader.Fail(key, "mixes IPv4 and IPv6 in one set", "give each family a set of its own");
      }
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace railhead
