#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "netns/base/text.h"

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
  const auto most =
      std::ranges::max_element(nodes, [](const auto& a, const auto& b) { return a.second < b.second; });
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

namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

// NCCL's parser (src/misc/param.cc) cuts a value at 1,023 bytes.
constexpr std::size_t kMaxValue = 1022;

struct NumberField {
  const char* key;
  const char* variable;
  int least;
  int most;
};

// What NCCL takes, not more: out of these it warns, clips or fails at the first connection.
constexpr std::array kNumbers = {
    NumberField{"timeout", "NCCL_IB_TIMEOUT", 1, 31},  // 4.096 us * 2^n; 5 bits of the queue pair
    NumberField{"retryCount", "NCCL_IB_RETRY_CNT", 0, 7},
    NumberField{"qpsPerConnection", "NCCL_IB_QPS_PER_CONNECTION", 1, 128},
    NumberField{"fifoTrafficClass", "NCCL_IB_FIFO_TC", 0, 255},
    NumberField{"relaxedOrdering", "NCCL_IB_PCI_RELAXED_ORDERING", 0, 2},
    NumberField{"crossNic", "NCCL_CROSS_NIC", 0, 2},
};

struct SwitchField {
  const char* key;
  const char* variable;
};
constexpr std::array kSwitches = {
    SwitchField{"splitDataOnQps", "NCCL_IB_SPLIT_DATA_ON_QPS"},
    SwitchField{"adaptiveRouting", "NCCL_IB_ADAPTIVE_ROUTING"},
};

constexpr std::array<std::string_view, 6> kLevels = {"LOC", "PIX", "PXB", "P2C", "PHB", "SYS"};

// Another value in each pod, so of no use for all of them.
constexpr std::array<std::string_view, 7> kOfThePod = {
    "NCCL_IB_HCA",        "NCCL_IB_GID_INDEX",        "NCCL_IB_ADDR_FAMILY",
    "NCCL_IB_ADDR_RANGE", "NCCL_IB_ROCE_VERSION_NUM", "NCCL_IB_MERGE_VFS",
    "NCCL_TOPO_FILE"};

template <typename List>
bool Has(const List& list, std::string_view one) {
  return Contains(list, one);
}

void ReadNccl(JsonReader& nccl, Lines& lines) {
  for (const auto& field : kNumbers) {
    if (const auto number = nccl.Int(field.key, field.least, field.most))
      lines.emplace_back(field.variable, std::to_string(*number));
  }
  for (const auto& field : kSwitches) {
    if (const auto on = nccl.Bool(field.key)) lines.emplace_back(field.variable, *on ? "1" : "0");
  }
  if (const auto level = nccl.String("gdrLevel")) {
    if (!Has(kLevels, *level))
      nccl.Fail("gdrLevel", "'" + *level + "' is not known", "LOC, PIX, PXB, P2C, PHB or SYS");
    lines.emplace_back("NCCL_NET_GDR_LEVEL", *level);
  }
  nccl.Close();
}

bool IsVariable(const std::string& name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

void ReadEnv(JsonReader& env, Lines& lines) {
  for (const auto& name : env.Keys()) {
    const auto value = env.String(name);
    if (!IsVariable(name)) env.Fail(name, "is no variable name");
    if (Has(kOfThePod, name))
      env.Fail(name, "is another one in each pod", "leave it out: Railhead finds and writes it");
    if (value && (value->size() > kMaxValue || value->find_first_of("\r\n") != std::string::npos))
      env.Fail(name, "must be one line of at most 1,022 bytes");
    const auto same = [&](const auto& line) { return line.first == name; };
    if (std::ranges::any_of(lines, same))
      env.Fail(name, "is said by a field of handoff.nccl, too", "say it once");
    if (value) lines.emplace_back(name, *value);
  }
}

TopologyPolicy ReadTopologyPolicy(JsonReader& handoff) {
  const std::string text = handoff.String("topology").value_or("needed");
  if (text == "never") return TopologyPolicy::kNever;
  if (text == "always") return TopologyPolicy::kAlways;
  if (text != "needed") handoff.Fail("topology", "'" + text + "' is not known", "never, needed or always");
  return TopologyPolicy::kNeeded;
}

constexpr std::array kStacks = {std::pair{"rccl", HandoffStack::kRccl}, std::pair{"ucx", HandoffStack::kUcx},
                                std::pair{"nvshmem", HandoffStack::kNvshmem},
                                std::pair{"gloo", HandoffStack::kGloo},
                                std::pair{"openmpi", HandoffStack::kOpenMpi}};

std::set<HandoffStack> ReadStacks(JsonReader& handoff, std::set<HandoffStack> fallback) {
  const auto names = handoff.Strings("stacks");
  if (!names) return fallback;
  std::set<HandoffStack> stacks;
  for (const auto& name : *names) {
    const auto* const stack =
        std::ranges::find_if(kStacks, [&](const auto& known) { return name == known.first; });
    if (stack == kStacks.end()) {
      handoff.Fail("stacks", "'" + name + "' is not known",
                   "rccl, ucx, nvshmem, gloo or openmpi; NCCL is told in any case");
    } else {
      stacks.insert(stack->second);
    }
  }
  return stacks;
}

}  // namespace

HandoffOptions ReadHandoffOptions(JsonReader& handoff) {
  HandoffOptions options;
  options.topology = ReadTopologyPolicy(handoff);
  options.stacks = ReadStacks(handoff, std::move(options.stacks));
  if (auto nccl = handoff.Object("nccl")) ReadNccl(*nccl, options.env);
  if (auto env = handoff.Object("env")) ReadEnv(*env, options.env);
  return options;
}

}  // namespace railhead
