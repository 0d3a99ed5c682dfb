#include "tests/support/daemon/restart_node.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cni/state/allocation.h"
#include "netns/base/files.h"
#include "tests/support/eventually.h"
#include "tests/support/listening.h"
#include "tests/support/seed.h"

namespace railhead::testing {
namespace {

constexpr const char* kFabric = R"({"version": 1, "rails": [
    {"name": "rail0", "pf": "pf0"}, {"name": "rail1", "pf": "pf1"}, {"name": "rail2", "pf": "pf2"}], "pools": [
    {"resource": "a.io/rail0", "rails": ["rail0"]}, {"resource": "a.io/rail1", "rails": ["rail1"]},
    {"resource": "b.org/plain", "rails": ["rail2"], "ncclConfig": "off"}]})";

std::set<std::string> ToSet(const std::vector<std::string>& ids) {
  return {ids.begin(), ids.end()};
}

}  // namespace

RestartNode::RestartNode() : seed_(static_cast<unsigned>(Seed())), random_(seed_) {
  sysfs_.AddPf({.address = "0000:c3:00.0", .netdev = "pf2", .rdma = "mlx5_2", .numa_node = 1});
  devices_[kRail0] = ToSet(vfs0_);
  devices_[kRail1] = ToSet(vfs1_);
  devices_[kPlain] = ToSet(sysfs_.AddVfs("0000:c3:00.0", 6, {.rdma = "{pf}_rdma{n}"}));
  sysfs_.Write("/etc/railhead/fabric.json", kFabric);
}

unsigned RestartNode::Random(unsigned below) {
  return std::uniform_int_distribution<unsigned>(0, below - 1)(random_);
}

std::unique_ptr<DeviceManager> RestartNode::MakeKubelet(KubeletOptions options) {
  options.seed = seed_;
  options.record = [this, more = std::move(options.record)](const TraceEvent& event) {
    Check(event);
    if (more) more(event);
  };
  return std::make_unique<DeviceManager>(directory_, std::move(options));
}

// Checks every list that railheadd sends.
void RestartNode::Check(const TraceEvent& event) {
  if (event.from != "plugin" || event.call != "ListAndWatch") return;
  const auto* devices = Field(event.response, "devices");
  bool whole = ToSet(IdsIn(devices)) == devices_.at(event.resource) &&
               devices->size() == devices_.at(event.resource).size();
  for (const auto& device : *devices) whole = whole && device.value("health", "") == "Healthy";
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!whole) wrong_lists_.insert(event.resource + ": " + event.response.dump());
}

// The server before the devices: when an old server's stream ends, kubelet drops the devices.
std::string RestartNode::Unserved(DeviceManager* kubelet) const {
  for (const auto& [resource, ids] : devices_) {
    const std::string server = kubelet->OnlyServer(resource);
    if (server.empty() || !SomebodyListens(server)) return resource + " has no server of its own: " + server;
    const int streams = kubelet->OpenStreams(resource);
    if (streams > most_streams_) return resource + " has " + std::to_string(streams) + " streams";
    const auto status = kubelet->NodeStatus(resource);
    if (!status || status->allocatable != ids.size() || status->capacity != ids.size())
      return resource + " has other numbers of devices on the node";
    std::set<std::string> present;
    for (const SeenDevice& device : kubelet->Present(resource)) {
      if (device.healthy) present.insert(device.id);
    }
    if (present != ids) return resource + " has other healthy devices";
  }
  return "";
}

// Unserved(), or a socket that is not the server's of a resource.
std::string RestartNode::Fault(DeviceManager* kubelet) const {
  std::string fault = Unserved(kubelet);
  if (!fault.empty()) return fault;
  std::set<std::string> servers;
  for (const auto& [resource, ids] : devices_) servers.insert(kubelet->OnlyServer(resource));
  const auto names = ListDirectory(directory_).value().value_or(std::vector<std::string>{});
  for (const std::string& name : names) {
    if (name.starts_with("railhead-") && !servers.contains(directory_ + "/" + name))
      return name + " is nobody's server";
  }
  return "";
}

void RestartNode::ExpectWhole(DeviceManager* kubelet, const std::string& when) {
  std::string fault;
  (void)Eventually([&] { return (fault = Fault(kubelet)).empty(); });
  ASSERT_EQ(fault, "") << when;
  ExpectPods(kubelet, when);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& list : wrong_lists_) ADD_FAILURE() << when << ": railheadd has told of " << list;
}

// Expects that kubelet knows exactly these pods, and that railheadd has a record for each of their devices.
// Admitting the pods again, as kubelet does after its restart, must neither fail nor allocate.
void RestartNode::ExpectPods(DeviceManager* kubelet, const std::string& when) {
  std::map<std::string, std::string> holder;
  for (const auto& [uid, pod] : pods_) {
    const auto again = kubelet->Admit(uid, pod.containers);
    ASSERT_TRUE(again) << when << ": " << uid << ": " << Describe(again.error());
    for (const auto& [container, given] : *again) EXPECT_TRUE(given.empty()) << when << ": " << uid;
    for (const auto& [container, resources] : pod.has) {
      for (const auto& [resource, ids] : resources) {
        const auto allocated = kubelet->Allocated(resource);
        const auto entry = allocated.find({uid, container});
        ASSERT_TRUE(entry != allocated.end()) << when << ": " << uid << " has lost " << resource;
        EXPECT_EQ(entry->second, ids) << when << ": " << uid;
        for (const std::string& id : ids) {
          const auto first = holder.emplace(id, uid).first;
          EXPECT_EQ(first->second, uid) << when << ": " << id << " is given out twice";
          const auto record = ReadAllocation(root_, id);
          ASSERT_TRUE(record && *record) << when << ": no allocation record of " << id;
          EXPECT_EQ((*record)->resource, resource) << when;
          EXPECT_TRUE(ToSet((*record)->siblings).contains(id)) << when;
        }
      }
    }
  }
}

std::size_t RestartNode::Free(const std::string& resource) const {
  std::set<std::string> used;
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [container, resources] : pod.has) {
      const auto found = resources.find(resource);
      if (found != resources.end()) used.insert(found->second.begin(), found->second.end());
    }
  }
  return devices_.at(resource).size() - used.size();
}

std::string RestartNode::AdmitSomePod(DeviceManager* kubelet) {
  PodContainer app{"app", {}};
  for (const auto& [resource, ids] : devices_) {
    const auto most = std::min<std::size_t>(Free(resource), 2);
    const auto count = Random(static_cast<unsigned>(most) + 1);
    if (count > 0) app.wants[resource] = count;
  }
  if (app.wants.empty()) return "";
  std::vector<PodContainer> containers;
  if (Random(3) == 0) containers.push_back({"init", app.wants, true});
  containers.push_back(std::move(app));
  const std::string uid = "uid-" + std::to_string(++pods_so_far_);
  const auto given = kubelet->Admit(uid, containers);
  if (!given) {
    kubelet->RemovePod(uid);
    return "";
  }
  Pod pod{std::move(containers), {}};
  for (const auto& [container, resources] : *given) {
    for (const auto& [resource, seen] : resources) pod.has[container][resource] = ToSet(seen.ids);
  }
  pods_[uid] = std::move(pod);
  return uid;
}

void RestartNode::RemoveSomePod(DeviceManager* kubelet) {
  if (pods_.empty()) return;
  const auto victim = std::next(pods_.begin(), Random(static_cast<unsigned>(pods_.size())));
  kubelet->RemovePod(victim->first);
  pods_.erase(victim);
}

}  // namespace railhead::testing
