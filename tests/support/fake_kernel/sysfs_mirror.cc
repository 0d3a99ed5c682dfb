#include "tests/support/fake_kernel/sysfs_mirror.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace railhead::testing {
namespace fs = std::filesystem;
namespace {

constexpr const char* kVirtual = "/sys/devices/virtual";

}  // namespace

std::string SysfsMirror::DevicePath(const std::string& bdf) {
  const std::string link = sysfs_.directory() + "/sys/bus/pci/devices/" + bdf;
  const auto known = paths_.find(bdf);
  if (known != paths_.end() && ::access(link.c_str(), F_OK) == 0) return known->second;
  std::error_code error;
  const std::string path = fs::canonical(link, error);
  return paths_[bdf] = path.substr(fs::canonical(sysfs_.directory(), error).string().size());
}

SysfsMirror::Facts SysfsMirror::FactsOf(FakeState& state) {
  Facts facts;
  for (const auto& netdev : state.netdevs) {
    if (netdev.ns != kHost) continue;
    const Link& link = netdev.link;
    facts.netdevs.push_back(
        {link.name, netdev.bdf, link.index, link.mtu, link.mac, state.HasCarrier(netdev)});
  }
  for (const auto& rdma : state.rdmas) {
    const FakeNetdev* netdev = state.Netdev(rdma.netdev);
    facts.rdmas.push_back({rdma.name, netdev == nullptr ? "" : netdev->link.name,
                           netdev == nullptr || rdma.rxe ? "" : netdev->bdf, rdma.uverbs, rdma.rxe,
                           state.RdmaVisible(rdma, kHost), state.PortActive(rdma)});
  }
  for (const auto& function : state.functions) {
    if (state.OfFunction(function.bdf) == nullptr) continue;  // unbound
    facts.drivers.push_back({function.bdf, function.driver.name});
  }
  return facts;
}

void SysfsMirror::Show(const Facts::Netdev& netdev, Tree& tree) {
  const std::string device = netdev.bdf.empty() ? kVirtual : DevicePath(netdev.bdf);
  const std::string path = device + "/net/" + netdev.name;
  tree.files[path + "/ifindex"] = std::to_string(netdev.index) + "\n";
  tree.files[path + "/type"] = netdev.name == "lo" ? "772\n" : "1\n";
  tree.files[path + "/mtu"] = std::to_string(netdev.mtu) + "\n";
  tree.files[path + "/carrier"] = netdev.carrier ? "1\n" : "0\n";
  tree.files[path + "/address"] = netdev.mac.ToString() + "\n";
  if (!netdev.bdf.empty()) tree.links[path + "/device"] = device;
  tree.links["/sys/class/net/" + netdev.name] = path;
}

void SysfsMirror::Show(const Facts::Rdma& rdma, Tree& tree) {
  const bool hardware = !rdma.rxe && !rdma.netdev.empty();
  const std::string device = hardware ? DevicePath(rdma.bdf) : kVirtual;
  const std::string uverbs = "uverbs" + std::to_string(rdma.uverbs);
  const std::string verbs_path = device + "/infiniband_verbs/" + uverbs;
  // Character devices are not tagged with a namespace.
  tree.files[verbs_path + "/ibdev"] = rdma.name + "\n";
  tree.links["/sys/class/infiniband_verbs/" + uverbs] = verbs_path;
  tree.files["/dev/infiniband/" + uverbs] = "";
  tree.files["/dev/infiniband/rdma_cm"] = "";
  if (!rdma.visible) return;
  const std::string path = device + "/infiniband/" + rdma.name;
  tree.files[path + "/ports/1/state"] = rdma.active ? "4: ACTIVE\n" : "1: DOWN\n";
  tree.files[path + "/ports/1/link_layer"] = "Ethernet\n";
  tree.files[path + "/node_type"] = "1: CA\n";
  if (hardware) tree.links[path + "/device"] = device;
  if (rdma.rxe && !rdma.netdev.empty()) tree.files[path + "/parent"] = rdma.netdev + "\n";
  tree.links["/sys/class/infiniband/" + rdma.name] = path;
}

void SysfsMirror::RemoveOld(const Tree& wanted) {
  const auto prune = [&](const std::string& path) {
    sysfs_.Remove(path);
    // Directories that became empty: a function without netdev has no net/.
    std::error_code error;
    for (fs::path up = fs::path(path).parent_path(); up.has_filename() && up != "/sys";
         up = up.parent_path()) {
      if (!fs::remove(sysfs_.directory() + up.string(), error)) break;
    }
  };
  for (const auto& [path, target] : shown_.links) {
    if (!wanted.links.contains(path)) prune(path);
  }
  for (const auto& [path, content] : shown_.files) {
    if (!wanted.files.contains(path)) prune(path);
  }
}

void SysfsMirror::Sync(FakeState& state) {
  Facts facts = FactsOf(state);
  if (facts == facts_) return;
  facts_ = std::move(facts);
  Tree wanted;
  for (const auto& netdev : facts_.netdevs) Show(netdev, wanted);
  for (const auto& rdma : facts_.rdmas) Show(rdma, wanted);
  for (const auto& [bdf, driver] : facts_.drivers)
    wanted.links[DevicePath(bdf) + "/driver"] = "/sys/bus/pci/drivers/" + driver;
  RemoveOld(wanted);
  for (const auto& [path, content] : wanted.files) {
    const auto shown = shown_.files.find(path);
    if (shown == shown_.files.end() || shown->second != content) sysfs_.Write(path, content);
  }
  for (const auto& [path, target] : wanted.links) {
    const auto shown = shown_.links.find(path);
    if (shown == shown_.links.end() || shown->second != target) sysfs_.Link(path, target);
  }
  shown_ = std::move(wanted);
}

}  // namespace railhead::testing
