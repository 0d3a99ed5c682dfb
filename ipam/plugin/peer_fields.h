// Fields that configurations of host-local and whereabouts have besides those that mean
// the same here: read as they stand, so that a network only changes its "type".
//
// What has no effect here is accepted: there is no leader to elect, no log file and no
// directory of files. Which these are, and where the meaning differs: docs/addresses.md.
// Errors stick to the reader, with the JSON pointer. Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/protocol/cni_result.h"
#include "ipam/plugin/range_fields.h"
#include "netns/json/json_reader.h"

namespace railhead {

struct PeerFields {
  std::vector<RangeSetFields> sets;  // whereabouts' `range` and `ipRanges`
  std::vector<CniIp> addresses;      // whereabouts': in every answer, kept nowhere
  std::optional<int> node_slice;     // whereabouts': a node's part of a range, as a prefix length
  std::string dns;                   // whereabouts': a JSON object; empty: none
  std::string resolv_conf;           // host-local's: a path; empty: none
};

// `ipam` is the object of that name.
PeerFields ReadPeerFields(JsonReader& ipam);

}  // namespace railhead
