#include "deviceplugin/tools/migrate/rails.h"

#include <algorithm>
#include <string>

#include "deviceplugin/tools/migrate/addresses.h"

namespace railhead::migrate {
namespace {

const OrderedJson* PoolOf(const OrderedJson& fabric, const std::string& resource) {
  for (const OrderedJson& pool : fabric.at("pools")) {
    if (pool.at("resource") == resource) return &pool;
  }
  return nullptr;
}

// The networks whose devices are of this rail; none when one of them may have devices of others.
std::vector<Network*> NetworksOf(const OrderedJson& rail, const OrderedJson& fabric,
                                 std::vector<Network>* networks) {
  std::vector<Network*> users;
  for (Network& network : *networks) {
    const OrderedJson* pool = PoolOf(fabric, network.resource);
    if (!network.usable || pool == nullptr) continue;
    const auto& rails = pool->at("rails");
    if (std::find(rails.begin(), rails.end(), rail.at("name")) == rails.end()) continue;
    if (rails.size() != 1) return {};
    users.push_back(&network);
  }
  return users;
}

OrderedJson ValueOf(const OrderedJson& entry, const char* key) {
  return entry.value(key, OrderedJson());
}

bool SayTheSame(const std::vector<Network*>& users, const char* key) {
  return std::all_of(users.begin(), users.end(), [&](const Network* network) {
    return ValueOf(network->entry, key) == ValueOf(users.front()->entry, key);
  });
}

void Move(const std::vector<Network*>& users, const char* key, const std::string& place, OrderedJson* rail) {
  if (!users.front()->entry.contains(key)) return;
  (*rail)[key] = users.front()->entry[key];
  for (Network* network : users) {
    network->entry.erase(key);
    network->keys.Set(network->origins[key], Fate::kChanged,
                      "to " + std::string(place).append("/").append(key) + " of fabric.json");
  }
}

void MoveVlan(const std::vector<Network*>& users, const std::string& place, OrderedJson* rail) {
  const bool tagged = std::all_of(users.begin(), users.end(), [](const Network* network) {
    // A rail knows 802.1Q only, and without a VLAN the port's own setting is not touched.
    return network->entry.contains("vlan") && !network->entry.contains("vlanProto");
  });
  if (!tagged || !SayTheSame(users, "vlan") || !SayTheSame(users, "vlanQoS")) return;
  Move(users, "vlan", place, rail);
  Move(users, "vlanQoS", place, rail);
}

bool HaveTheSameAddresses(const std::vector<Network*>& users) {
  return std::all_of(users.begin(), users.end(), [&](const Network* network) {
    return network->addresses && network->addresses == users.front()->addresses;
  });
}

}  // namespace

void MoveToRails(const Options& options, OrderedJson* fabric, std::vector<Network>* networks) {
  bool leases = false;
  auto& rails = (*fabric)["rails"];
  for (std::size_t i = 0; i < rails.size(); ++i) {
    OrderedJson& rail = rails[i];
    const std::string place = "/rails/" + std::to_string(i);
    const auto users = NetworksOf(rail, *fabric, networks);
    if (users.empty()) continue;
    MoveVlan(users, place, &rail);
    if (SayTheSame(users, "mtu")) Move(users, "mtu", place, &rail);
    if (!HaveTheSameAddresses(users)) continue;
    rail.update(users.front()->addresses->fields);
    leases = leases || (options.lease_blocks && users.front()->ipam_type == "whereabouts");
    for (Network* network : users) MoveAddressesToRail(place, options, network);
  }
  if (leases) (*fabric)["addresses"]["store"]["type"] = "kubernetes";
  const bool exclusive =
      std::any_of(networks->begin(), networks->end(), [](const Network& one) { return one.exclusive_rdma; });
  if (exclusive) (*fabric)["rdmaMode"] = "exclusive";
}

}  // namespace railhead::migrate
