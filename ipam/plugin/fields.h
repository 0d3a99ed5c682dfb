// The `ipam` object of a network configuration as it is written: types and names checked, nothing looked up.
//
// It describes one address, or one for each of several sets of ranges. With `links` it describes one for each
// of several interfaces of the same attachment. Fields and their meaning: docs/reference/cni.md, section
// `railhead-ipam`; each is a line of fields_shape.h.
// Errors: kMalformed, kInvalid with the JSON pointer and what to do. Threads: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/protocol/cni_result.h"
#include "ipam/plugin/fixed_addresses.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct RangeFields {
  std::string where;  // "network configuration: /ipam", for messages
  IpPrefix subnet;
  std::optional<IpAddress> first;
  std::optional<IpAddress> last;
  std::optional<IpAddress> gateway;
  bool first_is_gateway = false;  // the subnet's first address, where none is given
  bool of_cluster = false;        // whereabouts': all nodes give from it, each from its slice
  std::vector<IpRange> exclude;
};

// Alternatives, in their order.
using RangeSetFields = std::vector<RangeFields>;

// Of the attachment.
struct RouteFields : CniRoute {};

// One address to be given: by rail, or of one of `ranges`.
struct PoolFields {
  std::string where;   // "network configuration: /ipam", for messages
  std::string ifname;  // of an entry of `links`
  std::optional<std::string> rail;
  RangeSetFields ranges;
  std::optional<IpAddress> gateway;  // in place of the rail's
  std::vector<IpRange> exclude;
  std::vector<IpRange> exclude_of_all;  // of all links: those of another family do not matter
  // Routers that the configuration names, for this or another pool: no pod gets their addresses.
  std::vector<IpAddress> next_hops;
  std::optional<std::vector<RouteFields>> routes;
  std::optional<std::int64_t> reuse_delay_seconds;
  std::optional<std::int64_t> min_reuse_delay_seconds;
  std::optional<int> vf;          // the index of the VF that the address is for
  std::optional<MacAddress> mac;  // the one that its interface has
  std::optional<int> node_slice;  // of ranges that all nodes share
};

struct IpamFields {
  std::string fabric;   // path
  bool listed = false;  // there is a `links`
  // In their order; none when neither rail nor subnet, ranges nor links are given.
  std::vector<PoolFields> pools;
  std::vector<FixedAddress> requests;
  std::vector<CniIp> also;  // whereabouts' `addresses`: in every answer, kept nowhere
  std::string dns;          // whereabouts': a JSON object; empty: none
  std::string resolv_conf;  // host-local's: a path; empty: none
};

// `config` is the whole network configuration as the runtime sent it, `args` CNI_ARGS.
Result<IpamFields> ReadIpamFields(const std::string& config, const CniArgs& args);

}  // namespace railhead::ipam
