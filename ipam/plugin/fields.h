// The `ipam` object of a network configuration as it is written: types and names
// checked, nothing looked up.
//
// It describes one address, or one for each of several sets of ranges, or, with `links`,
// one for each of several interfaces of the same attachment. Fields and their meaning: docs/reference/cni.md,
// section `railhead-ipam`. Errors: kMalformed, kInvalid with the JSON pointer and what to
// do. Threads: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/protocol/cni_result.h"
#include "ipam/plugin/ipam_plugin.h"
#include "ipam/store/range.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead::ipam {

// Fields that configurations of host-local and whereabouts have besides those that mean
// the same here: read as they stand, so that a network only changes its "type".
//
// What has no effect here is accepted: there is no leader to elect, no log file and no
// directory of files. Which these are, and where the meaning differs: docs/addresses.md.
// Errors stick to the reader, with the JSON pointer. Threads: pure functions.

// Subnets and ranges as a network configuration writes them: `subnet`, `rangeStart`,
// `rangeEnd`, `gateway` (ours and host-local's) and host-local's `ranges`: a list of sets,
// of which each gives one address, from the first of its ranges that has any.
// Errors stick to the reader, with the JSON pointer. Threads: pure functions.

struct RangeFields {
  std::string where;  // "network configuration: /ipam", for messages
  IpPrefix subnet;
  std::optional<IpAddress> first;
  std::optional<IpAddress> last;
  std::optional<IpAddress> gateway;
  bool first_is_gateway = false;  // the subnet's first address, where none is given
  bool of_cluster = false;        // whereabouts': all nodes give from it, each from its slice
  std::vector<AddressRange> exclude;
};

// Alternatives, in their order.
using RangeSetFields = std::vector<RangeFields>;

// Absent or empty: nullopt.
std::optional<IpAddress> ReadAddress(JsonReader& reader, const std::string& key);
std::optional<IpPrefix> ReadPrefix(JsonReader& reader, const std::string& key);
// A list of addresses, ranges and prefixes.
std::vector<AddressRange> ReadExclude(JsonReader& reader, const std::string& key);

// `subnet` and what goes with it, but for the gateway; nullopt without a subnet.
std::optional<RangeFields> ReadRange(JsonReader& reader);

// host-local's `ranges`, and the capability of the same form. A gateway that is not given
// is the subnet's first address, as host-local has it.
std::vector<RangeSetFields> ReadRangeSets(JsonReader& reader, const std::string& key);

struct PeerFields {
  std::vector<RangeSetFields> sets;  // whereabouts' `range` and `ipRanges`
  std::vector<CniIp> addresses;      // whereabouts': in every answer, kept nowhere
  std::optional<int> node_slice;     // whereabouts': a node's part of a range, as a prefix length
  std::string dns;                   // whereabouts': a JSON object; empty: none
  std::string resolv_conf;           // host-local's: a path; empty: none
};

// `ipam` is the object of that name.
PeerFields ReadPeerFields(JsonReader& ipam);

// One address to be given: by rail, or of one of `ranges`.
struct PoolFields {
  std::string where;   // "network configuration: /ipam", for messages
  std::string ifname;  // of an entry of `links`
  std::optional<std::string> rail;
  RangeSetFields ranges;
  std::optional<IpAddress> gateway;  // in place of the rail's
  std::vector<AddressRange> exclude;
  std::vector<AddressRange> exclude_of_all;  // of all links: those of another family do not matter
  std::optional<std::vector<CniRoute>> routes;
  std::optional<std::int64_t> rest_seconds;
  std::optional<std::int64_t> min_rest_seconds;
  std::optional<int> vf;          // the index of the VF that the address is for
  std::optional<int> node_slice;  // of ranges that all nodes share
};

struct IpamFields {
  std::string fabric;   // path
  bool listed = false;  // there is a `links`
  // In their order; none when neither rail nor subnet, ranges nor links are given.
  std::vector<PoolFields> pools;
  std::vector<AddressRequest> requests;
  PeerFields peers;  // but for its sets, which are in `pools`
};

// `config` is the whole network configuration as the runtime sent it, `args` CNI_ARGS.
Result<IpamFields> ReadIpamFields(const std::string& config, const CniArgs& args);

}  // namespace railhead::ipam
