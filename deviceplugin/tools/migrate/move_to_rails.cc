#include "deviceplugin/tools/migrate/move_to_rails.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "deviceplugin/tools/migrate/key_outcomes.h"
#include "deviceplugin/tools/migrate/translate_ipam.h"
#include "netns/base/text.h"

namespace railhead::migrate {
namespace {

const OrderedJson* PoolOf(const OrderedJson& fabric, const std::string& resource) {
  for (const OrderedJson& pool : fabric.at("pools")) {
    if (pool.at("resource") == resource) return &pool;
  }
  return nullptr;
}

// The networks whose devices are of this rail. Empty when one of them may also have devices of other rails.
std::vector<Network*> NetworksOf(const OrderedJson& rail, const OrderedJson& fabric,
                                 std::vector<Network>* networks) {
  std::vector<Network*> users;
  for (Network& network : *networks) {
    const OrderedJson* pool = PoolOf(fabric, network.resource);
    if (!network.usable || pool == nullptr) continue;
    const auto& rails = pool->at("rails");
    if (!Contains(rails, rail.at("name"))) continue;
    if (rails.size() != 1) return {};
    users.push_back(&network);
  }
  return users;
}

OrderedJson ValueOf(const OrderedJson& entry, const char* key) {
  return entry.value(key, OrderedJson());
}

bool KeepUnchanged(const std::vector<Network*>& users, const char* key) {
  return std::ranges::all_of(users, [&](const Network* network) {
    return ValueOf(network->entry, key) == ValueOf(users.front()->entry, key);
  });
}

void Move(const std::vector<Network*>& users, const char* key, const std::string& place, OrderedJson* rail) {
  if (!users.front()->entry.contains(key)) return;
  (*rail)[key] = users.front()->entry[key];
  for (Network* network : users) {
    network->entry.erase(key);
    network->keys.Set(network->origins[key], KeyOutcome::kChanged,
                      "to " + std::string(place).append("/").append(key) + " of fabric.json");
  }
}

void MoveVlan(const std::vector<Network*>& users, const std::string& place, OrderedJson* rail) {
  const bool tagged = std::ranges::all_of(users, [](const Network* network) {
    // A rail supports 802.1Q only. Without a VLAN the port keeps its own setting.
    return network->entry.contains("vlan") && !network->entry.contains("vlanProto");
  });
  if (!tagged || !KeepUnchanged(users, "vlan") || !KeepUnchanged(users, "vlanQoS")) return;
  Move(users, "vlan", place, rail);
  Move(users, "vlanQoS", place, rail);
}

bool HaveTheSameAddresses(const std::vector<Network*>& users) {
  return std::ranges::all_of(users, [&](const Network* network) {
    return network->addresses && network->addresses == users.front()->addresses;
  });
}

}  // namespace

void MoveToRails(const Options& options, OrderedJson* fabric, std::vector<Network>* networks) {
  bool claims = false;
  auto& rails = (*fabric)["rails"];
  for (std::size_t i = 0; i < rails.size(); ++i) {
    OrderedJson& rail = rails[i];
    const std::string place = "/rails/" + std::to_string(i);
    const auto users = NetworksOf(rail, *fabric, networks);
    if (users.empty()) continue;
    MoveVlan(users, place, &rail);
    if (KeepUnchanged(users, "mtu")) Move(users, "mtu", place, &rail);
    if (!HaveTheSameAddresses(users)) continue;
    rail.update(users.front()->addresses->fields);
    claims = claims || (options.nodes != 0 && rail.contains("nodeBlock"));
    for (Network* network : users) MoveAddressesToRail(place, options, network);
  }
  if (claims) (*fabric)["addresses"]["index"]["from"] = "kubernetes";
  const bool exclusive = std::ranges::any_of(*networks, &Network::exclusive_rdma);
  if (exclusive) (*fabric)["rdmaMode"] = "exclusive";
}

}  // namespace railhead::migrate
