#include "cni/fabric/addressing_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace railhead {
namespace {

std::optional<IpPrefix> Prefix(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  if (!text) return std::nullopt;
  const auto prefix = IpPrefix::Parse(*text);
  if (!prefix) {
    reader.Fail(key, "'" + *text + "' is no prefix", "for example 10.100.0.0/24");
  } else if (prefix->Network() != *prefix) {
    reader.Fail(key, "'" + *text + "' has host bits set", "write " + prefix->Network().ToString());
  }
  return prefix;
}

std::optional<IpRange> RangeOrPrefix(const std::string& text) {
  if (const auto prefix = IpPrefix::Parse(text)) return IpRange{prefix->First(), prefix->Last()};
  return ParseIpRange(text);
}

void AddNodeRange(JsonReader& ranges, const std::string& node, const std::string& text, Rail& rail) {
  const auto range = ParseIpRange(text);
  if (!range) return ranges.Fail(node, "'" + text + "' is no range", "for example 10.100.0.10-10.100.0.99");
  if (rail.subnet && !(rail.subnet->Contains(range->first) && rail.subnet->Contains(range->last))) {
    ranges.Fail(node, range->ToString() + " is outside the subnet " + rail.subnet->ToString());
  }
  for (const auto& [other, all] : rail.node_ranges) {
    for (const auto& taken : all) {
      if (range->last < taken.first || taken.last < range->first) continue;
      ranges.Fail(node, range->ToString() + " overlaps " + taken.ToString() + " of node '" + other + "'");
    }
  }
  rail.node_ranges[node].push_back(*range);
}

// Why no station can have it; "": one can.
std::string StationFault(const IpAddress& address, const Rail& rail) {
  if (!rail.subnet || !rail.subnet->Contains(address)) return " is outside the rail's subnet";
  if (rail.gateway == address) return " is the gateway";
  return "";
}

void ReadStationOfEach(JsonReader& stations, Rail& rail) {
  std::set<IpAddress> taken;
  for (const auto& node : stations.Keys()) {
    const auto text = stations.String(node);
    if (!text) continue;
    const auto address = IpAddress::Parse(*text);
    if (!address) {
      stations.Fail(node, "'" + *text + "' is no IP address");
    } else if (const std::string fault = StationFault(*address, rail); !fault.empty()) {
      stations.Fail(node, *text + fault);
    } else if (!taken.insert(*address).second) {
      stations.Fail(node, "another node's station has " + *text);
    } else {
      rail.stations[node] = *address;
      rail.exclude.push_back({*address, *address});
    }
  }
}

// Pods get none of it: a node that is listed later finds its station's address free.
void ReadStationRange(JsonReader& reader, const std::string& text, const std::map<std::string, int>& nodes,
                      Rail& rail) {
  const auto range = RangeOrPrefix(text);
  if (!range) {
    return reader.Fail("stations", "'" + text + "' is no range or prefix",
                       R"(for example "10.100.252.0-10.100.255.250", or an object with each node's address)");
  }
  for (const IpAddress& end : {range->first, range->last}) {
    if (!rail.subnet || !rail.subnet->Contains(end))
      return reader.Fail("stations", end.ToString() + StationFault(end, rail));
  }
  if (rail.gateway && range->Contains(*rail.gateway))
    return reader.Fail("stations", "the gateway " + rail.gateway->ToString() + " is in " + range->ToString());
  if (!rail.subnet->address.IsV6() &&
      (range->Contains(rail.subnet->First()) || range->Contains(rail.subnet->Last())))
    return reader.Fail("stations",
                       range->ToString() + " has the subnet's first or last address, which no host can have");
  if (nodes.empty())
    return reader.Fail("stations", "a range needs `nodes`", "the node with index i has its i-th address");
  const auto most = std::max_element(nodes.begin(), nodes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto last = range->last.Minus(range->first);
  if (last && static_cast<std::uint64_t>(most->second) > *last) {
    return reader.Fail("stations", range->ToString() + " has no address for node '" + most->first +
                                       "' with index " + std::to_string(most->second));
  }
  rail.station_range = *range;
  rail.exclude.push_back(*range);
}

void ReadStations(JsonReader& reader, const std::map<std::string, int>& nodes, Rail& rail) {
  const auto* const raw = reader.Raw("stations");
  if (raw != nullptr && raw->is_string())
    return ReadStationRange(reader, raw->get<std::string>(), nodes, rail);
  if (auto stations = reader.Object("stations")) ReadStationOfEach(*stations, rail);
}

void ReadNodeRanges(JsonReader& reader, Rail& rail) {
  if (const auto block = reader.Int("nodeBlock", 1, 128); block) rail.node_block = static_cast<int>(*block);
  auto ranges = reader.Object("nodeRanges");
  if (!ranges) return;
  for (const auto& node : ranges->Keys()) {
    const auto* value = ranges->Raw(node);
    std::vector<std::string> texts;
    if (value != nullptr && value->is_array()) {
      texts = ranges->Strings(node).value_or(texts);
      if (texts.empty()) ranges->Fail(node, "is empty", "for example [\"10.100.0.10-10.100.0.99\"]");
    } else if (const auto text = ranges->String(node); text) {
      texts.push_back(*text);
    }
    for (const auto& text : texts) AddNodeRange(*ranges, node, text, rail);
  }
}

}  // namespace

void ReadAddressing(JsonReader& reader, const std::map<std::string, int>& nodes, Rail& rail) {
  rail.subnet = Prefix(reader, "subnet");
  if (const auto text = reader.String("gateway"); text) {
    rail.gateway = IpAddress::Parse(*text);
    if (!rail.gateway) {
      reader.Fail("gateway", "'" + *text + "' is no IP address");
    } else if (!rail.subnet) {
      reader.Fail("gateway", "there is no subnet", "give the rail its subnet");
    } else if (!rail.subnet->Contains(*rail.gateway)) {
      reader.Fail("gateway", *text + " is outside the subnet " + rail.subnet->ToString());
    }
  }
  const auto routes = reader.Strings("routes").value_or(std::vector<std::string>{});
  for (const auto& text : routes) {
    const auto prefix = IpPrefix::Parse(text);
    if (!prefix || prefix->Network() != *prefix) {
      reader.Fail("routes", "'" + text + "' is no network prefix");
      continue;
    }
    if (rail.subnet && prefix->address.IsV6() != rail.subnet->address.IsV6()) {
      reader.Fail("routes", "'" + text + "' is not of the subnet's address family");
    }
    rail.routes.push_back(*prefix);
  }
  if (!routes.empty() && !rail.gateway)
    reader.Fail("routes", "there is no gateway", "give the rail its gateway");
  for (const auto& text : reader.Strings("exclude").value_or(std::vector<std::string>{})) {
    const auto range = RangeOrPrefix(text);
    if (!range) {
      reader.Fail("exclude", "'" + text + "' is no address, range or prefix");
    } else {
      rail.exclude.push_back(*range);
    }
  }
  ReadStations(reader, nodes, rail);
  ReadNodeRanges(reader, rail);
  if (!rail.node_ranges.empty() && rail.node_block) {
    reader.Fail("nodeBlock", "cannot stand beside nodeRanges",
                "blocks and ranges of different nodes could overlap");
  }
  const bool shares = !rail.node_ranges.empty() || rail.node_block;
  if (shares && !rail.subnet) reader.Fail("subnet", "is required with nodeRanges or nodeBlock");
  if (rail.node_block && rail.subnet &&
      (*rail.node_block < rail.subnet->length || *rail.node_block > rail.subnet->address.Bits())) {
    reader.Fail("nodeBlock",
                std::to_string(*rail.node_block) + " does not divide " + rail.subnet->ToString());
  }
}

}  // namespace railhead
