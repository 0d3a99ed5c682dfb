#include "deviceplugin/tools/migrate/translate_ipam.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "deviceplugin/services/node_index/node_addresses.h"
#include "deviceplugin/tools/migrate/key_outcomes.h"
#include "ipam/plugin/fields.h"
#include "ipam/store/range.h"
#include "netns/base/addresses.h"
#include "netns/base/text.h"

namespace railhead::migrate {
namespace {

constexpr const char* kOwn = "railhead-ipam";
constexpr const char* kWhereabouts = "whereabouts";
constexpr const char* kHostLocal = "host-local";

struct Word {
  const char* key;
  const char* why;
};

constexpr const char* kHostLocalKeys[] = {"ranges",  "subnet", "rangeStart", "rangeEnd",
                                          "gateway", "routes", "resolvConf"};
constexpr const char* kWhereaboutsKeys[] = {"range",     "range_start",    "range_end", "exclude",
                                            "ipRanges",  "gateway",        "routes",    "dns",
                                            "addresses", "node_slice_size"};
constexpr Word kWithoutEffect[] = {
    {"dataDir", "each node has one store, /var/lib/railhead/ipam"},
    {"configuration_path", "addresses are allocated without the API server, so it needs no configuration"},
    {"kubernetes", "addresses are allocated without the API server"},
    {"datastore", "each node has a store of its own"},
    {"etcd_host", "each node has a store of its own"},
    {"etcd_username", "each node has a store of its own"},
    {"etcd_password", "each node has a store of its own"},
    {"etcd_key_file", "each node has a store of its own"},
    {"etcd_cert_file", "each node has a store of its own"},
    {"etcd_ca_cert_file", "each node has a store of its own"},
    {"enable_overlapping_ranges", "networks of one subnet share its addresses, so none is allocated twice"},
    {"network_name", "networks of one subnet share its addresses"},
    {"leader_lease_duration", "no leader is elected"},
    {"leader_renew_deadline", "no leader is elected"},
    {"leader_retry_period", "no leader is elected"},
    {"sleep_for_race", "railhead-ipam has no race to wait for"},
    {"reconciler_cron_expression", "railheadd reconciles on every node"},
    {"log_file", "the runtime's log has the errors"},
    {"log_level", "the runtime's log has the errors"},
};

constexpr const char* kWholeCluster =
    "whereabouts gives each address once in the cluster, a node of Railhead what is its own: give the rail "
    "nodeBlock and each node an index in nodes, or nodeRanges; or have nodes claim indices (--nodes)";

bool IsEmptyText(const nlohmann::json& value) {
  return value.is_string() && value.get_ref<const std::string&>().empty();
}

// Keys that railhead-ipam has under the same name; the report lists the others.
template <std::size_t N>
OrderedJson KnownKeys(const DocumentSection& ipam, const char* const (&keys)[N]) {
  OrderedJson own;
  own["type"] = kOwn;
  ipam.SetOutcome("type", KeyOutcome::kChanged, "to railhead-ipam");
  std::vector<std::string> known(std::begin(keys), std::end(keys));
  for (const auto& [key, value] : ipam.object().items()) {
    if (key == "type" || value.is_null()) continue;
    const auto* without = std::find_if(std::begin(kWithoutEffect), std::end(kWithoutEffect),
                                       [&key = key](const Word& word) { return word.key == key; });
    if (without != std::end(kWithoutEffect)) {
      ipam.SetOutcome(key, KeyOutcome::kDropped, std::string("because ") + without->why);
    } else if (!Contains(known, key)) {
      ipam.MarkUnknown(key, known);
    } else if (IsEmptyText(value)) {
      ipam.SetOutcome(key, KeyOutcome::kDropped, "because it is empty");
    } else {
      own[key] = value;
      ipam.SetOutcome(key, KeyOutcome::kKept, "as it is, of railhead-ipam");
    }
  }
  return own;
}

// host-local takes the first address where no gateway is given; railhead-ipam in `ranges` only.
void NameTheGateway(const DocumentSection& ipam, OrderedJson* own) {
  const auto subnet = IpPrefix::Parse(ipam.Text("subnet"));
  if (!subnet || own->contains("gateway") || subnet->length >= subnet->address.Bits() - 1) return;
  const std::string gateway = subnet->First().Plus(1).ToString();
  (*own)["gateway"] = gateway;
  ipam.SetOutcome("subnet", KeyOutcome::kChanged,
                  "and the gateway " + gateway + " named, which host-local takes by itself");
}

bool IsSimple(const CniRoute& route, const IpAddress& gateway) {
  return !route.mtu && !route.advmss && !route.priority && !route.table && !route.scope &&
         (!route.gateway || *route.gateway == gateway) && route.destination.address.IsV4() == gateway.IsV4();
}

void AddExclude(const IpRange& range, OrderedJson* fields) {
  (*fields)["exclude"].push_back(range.ToString());
}

// Excludes the part of the subnet that is outside of the range.
void ExcludeOthers(const ipam::RangeFields& range, OrderedJson* fields) {
  const IpAddress first = range.subnet.First();
  const IpAddress last = range.subnet.Last();
  if (range.first && first < *range.first) AddExclude({first, *range.first->Previous()}, fields);
  if (range.last && *range.last < last) AddExclude({range.last->Plus(1), last}, fields);
}

std::optional<RailAddresses> ForRail(const ipam::IpamFields& read, const Options& options) {
  if (read.pools.size() != 1 || read.pools[0].ranges.size() != 1) return std::nullopt;
  const ipam::PoolFields& pool = read.pools[0];
  const ipam::RangeFields& range = pool.ranges[0];
  if (!range.of_cluster && options.node.empty()) return std::nullopt;
  OrderedJson fields;
  fields["subnet"] = range.subnet.ToString();
  if (range.gateway) fields["gateway"] = range.gateway->ToString();
  for (const CniRoute& route : pool.routes.value_or(std::vector<ipam::RouteFields>{})) {
    if (!range.gateway || !IsSimple(route, *range.gateway)) return std::nullopt;
    fields["routes"].push_back(route.destination.ToString());
  }
  for (const auto* exclude : {&pool.exclude, &pool.exclude_of_all, &range.exclude}) {
    for (const IpRange& one : *exclude) AddExclude(one, &fields);
  }
  if (range.of_cluster) {
    ExcludeOthers(range, &fields);
    auto block = pool.node_slice;
    if (!block && options.nodes != 0)
      block = node_index::BlockLength(range.subnet, options.nodes, options.vfs);
    if (block) fields["nodeBlock"] = *block;
  } else {
    const IpRange all{range.first.value_or(range.subnet.First()), range.last.value_or(range.subnet.Last())};
    fields["nodeRanges"][options.node] = all.ToString();
  }
  return RailAddresses{std::move(fields)};
}

std::string TooSmall(const Network& network, const Options& options) {
  const IpPrefix& subnet = network.subnets.front();
  const int bits = std::min(subnet.address.Bits() - subnet.length, 62);
  return std::to_string(std::uint64_t{1} << static_cast<unsigned>(bits)) + " addresses for " +
         std::to_string(options.nodes) + " nodes with " + std::to_string(options.vfs) + " VFs each";
}

Result<void> TranslateOwn(const DocumentSection& ipam, OrderedJson own, const Options& options,
                          Network* network) {
  network->entry["ipam"] = std::move(own);
  const ipam::IpamFields read = RH_TRY_WRAP(ipam::ReadIpamFields(ConfigOf(*network), {}), network->source);
  for (const ipam::PoolFields& pool : read.pools) {
    for (const ipam::RangeFields& range : pool.ranges) network->subnets.push_back(range.subnet);
  }
  network->addresses = ForRail(read, options);
  if (network->ipam_type != kWhereabouts) return {};
  if (ipam.Find("node_slice_size") != nullptr) {
    ipam.SetOutcome("node_slice_size", KeyOutcome::kNeedsDecision,
                    "kept as it is; list the nodes with their indices in nodes of fabric.json");
    return {};
  }
  const std::string what = std::string("kept as it is, which makes it every node's: ") + kWholeCluster;
  ipam.SetOutcome(ipam.Find("range") != nullptr ? "range" : "ipRanges", KeyOutcome::kNeedsDecision, what);
  return {};
}

void KeepAll(const DocumentSection& ipam, Network* network) {
  network->entry["ipam"] = ipam.object();
  ipam.SetRemaining(KeyOutcome::kKept, "as it is, of " + network->ipam_type);
}

}  // namespace

Result<void> TranslateIpam(const DocumentSection& ipam, const Options& options, Network* network) {
  network->ipam_at = ipam.at();
  network->ipam_type = ipam.Text("type");
  const std::string& type = network->ipam_type;
  if (type == kWhereabouts) {
    return TranslateOwn(ipam, KnownKeys(ipam, kWhereaboutsKeys), options, network);
  }
  if (type == kHostLocal) {
    OrderedJson own = KnownKeys(ipam, kHostLocalKeys);
    NameTheGateway(ipam, &own);
    network->data_dir = ipam.Text("dataDir");
    return TranslateOwn(ipam, std::move(own), options, network);
  }
  if (type == "dhcp") {
    network->usable = false;
    ipam.SetOutcome(
        "type", KeyOutcome::kNeedsDecision,
        "dhcp asks on the interface in the pod, railhead asks before the interface is there: give the "
        "rail a subnet of its own, or keep sriov-cni for this network");
    ipam.SetRemaining(KeyOutcome::kNeedsDecision, "goes with dhcp");
    return {};
  }
  KeepAll(ipam, network);
  if (type.empty() || type == "static" || type == "nv-ipam" || type == kOwn) return {};
  ipam.SetOutcome("type", KeyOutcome::kNeedsDecision,
                  "kept as it is; whether " + type +
                      " gives addresses before the interface is in the pod is not known here");
  return {};
}

void MoveAddressesToRail(const std::string& rail, const Options& options, Network* network) {
  const bool of_cluster = network->ipam_type == kWhereabouts;
  const auto set = [&](const char* key, KeyOutcome outcome, const std::string& what) {
    // A network has the key in only one of these places. Otherwise a rail could not have it.
    for (const char* in : {"", "/ranges/0/0", "/ipRanges/0"})
      network->keys.Set(network->ipam_at + in + "/" + key, outcome, what);
  };
  const auto move = [&](const char* key, const char* to, const std::string& more = "") {
    set(key, KeyOutcome::kChanged, "to " + rail + "/" + to + " of fabric.json" + more);
  };
  for (const char* key : {"gateway", "routes"}) move(key, key);
  if (of_cluster) {
    move("exclude", "exclude");
    move("range", "subnet");
    for (const char* key : {"range_start", "range_end"})
      move(key, "exclude", ", which has the rest of the subnet");
    const std::string subnet = "to " + rail + "/subnet of fabric.json";
    const auto block = network->addresses->fields.find("nodeBlock");
    const bool has_block = block != network->addresses->fields.end();
    if (options.nodes != 0 && !has_block) {
      set("range", KeyOutcome::kNeedsDecision,
          subnet + ", which is too small: " + TooSmall(*network, options));
    } else if (options.nodes != 0) {
      set("range", KeyOutcome::kChanged,
          subnet + ", of which each node has a block (" + rail + "/nodeBlock: " + block->dump() + ")");
      move("node_slice_size", "nodeBlock");
    } else if (has_block) {
      set("node_slice_size", KeyOutcome::kNeedsDecision,
          "to " + rail + "/nodeBlock of fabric.json; list the nodes with their indices in nodes");
    } else {
      set("range", KeyOutcome::kNeedsDecision, subnet + "; " + kWholeCluster);
    }
  } else {
    move("subnet", "subnet");
    for (const char* key : {"rangeStart", "rangeEnd"})
      move(key, "nodeRanges", ", for the node " + options.node);
  }
  auto& ipam = network->entry["ipam"];
  for (const char* key : {"subnet", "range", "gateway", "routes", "exclude", "range_start", "range_end",
                          "rangeStart", "rangeEnd", "ranges", "ipRanges", "node_slice_size"}) {
    ipam.erase(key);
  }
  // The other keys are for every rail. If a rail has a subnet, railhead calls railhead-ipam without an ipam
  // here.
  if (ipam.size() == 1) network->entry.erase("ipam");
}

}  // namespace railhead::migrate
