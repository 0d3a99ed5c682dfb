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

void SysfsMirror::Show(FakeState& state, const FakeNetdev& netdev, Tree& tree) {
  const bool hardware = !netdev.bdf.empty();
  const std::string device = hardware ? DevicePath(netdev.bdf) : kVirtual;
  const std::string path = device + "/net/" + netdev.link.name;
  tree.files[path + "/ifindex"] = std::to_string(netdev.link.index) + "\n";
  tree.files[path + "/type"] = netdev.link.name == "lo" ? "772\n" : "1\n";
  tree.files[path + "/mtu"] = std::to_string(netdev.link.mtu) + "\n";
  tree.files[path + "/carrier"] = state.HasCarrier(netdev) ? "1\n" : "0\n";
  tree.files[path + "/address"] = netdev.link.mac.ToString() + "\n";
  if (hardware) tree.links[path + "/device"] = device;
  tree.links["/sys/class/net/" + netdev.link.name] = path;
}

void SysfsMirror::Show(FakeState& state, const FakeRdma& rdma, Tree& tree) {
  const FakeNetdev* netdev = state.Netdev(rdma.netdev);
  const bool hardware = !rdma.rxe && netdev != nullptr;
  const std::string device = hardware ? DevicePath(netdev->bdf) : kVirtual;
  const std::string uverbs = "uverbs" + std::to_string(rdma.uverbs);
  const std::string verbs_path = device + "/infiniband_verbs/" + uverbs;
  // Character devices are not tagged with a namespace.
  tree.files[verbs_path + "/ibdev"] = rdma.name + "\n";
  tree.links["/sys/class/infiniband_verbs/" + uverbs] = verbs_path;
  tree.files["/dev/infiniband/" + uverbs] = "";
  tree.files["/dev/infiniband/rdma_cm"] = "";
  if (!state.RdmaVisible(rdma, kHost)) return;
  const std::string path = device + "/infiniband/" + rdma.name;
  tree.files[path + "/ports/1/state"] = state.PortActive(rdma) ? "4: ACTIVE\n" : "1: DOWN\n";
  tree.files[path + "/ports/1/link_layer"] = "Ethernet\n";
  tree.files[path + "/node_type"] = "1: CA\n";
  if (hardware) tree.links[path + "/device"] = device;
  if (rdma.rxe && netdev != nullptr) tree.files[path + "/parent"] = netdev->link.name + "\n";
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
  Tree wanted;
  for (const auto& netdev : state.netdevs) {
    if (netdev.ns == kHost) Show(state, netdev, wanted);
  }
  for (const auto& rdma : state.rdmas) Show(state, rdma, wanted);
  for (const auto& function : state.functions) {
    if (state.OfFunction(function.bdf) == nullptr) continue;  // unbound
    wanted.links[DevicePath(function.bdf) + "/driver"] = "/sys/bus/pci/drivers/" + function.driver.name;
  }
  if (wanted == shown_) return;
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
