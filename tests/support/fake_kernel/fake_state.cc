// Namespaces, devices and drivers. Addresses and routes: fake_state_ip.cc; links:
// fake_state_links.cc.
#include "tests/support/fake_kernel/fake_state.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace railhead::testing {
namespace {

template <typename T, typename F>
auto* FindIf(std::vector<T>& all, F&& wanted) {
  const auto found = std::find_if(all.begin(), all.end(), wanted);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

IpAddress LinkLocalOf(const MacAddress& mac) {
  std::array<std::uint8_t, 16> bytes{0xfe, 0x80};
  const auto& m = mac.bytes;
  const std::array<std::uint8_t, 8> eui{
      static_cast<std::uint8_t>(m[0] ^ 2U), m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
  std::copy(eui.begin(), eui.end(), bytes.begin() + 8);
  return *IpAddress::FromBytes(bytes.data(), bytes.size());
}

bool FakeGidTable::Has(int netdev, const IpAddress& gid, GidType type) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const std::optional<Slot>& slot) {
    return slot && slot->netdev == netdev && slot->gid == gid && slot->type == type;
  });
}

void FakeGidTable::AddDefaults(int netdev, const MacAddress& mac) {
  for (std::size_t i = 0; i < types_.size(); ++i) slots_[i] = Slot{LinkLocalOf(mac), types_[i], netdev, 0};
}

void FakeGidTable::Add(int netdev, const IpAddress& address, int hidden_reads) {
  const IpAddress gid = GidOf(address);
  for (const GidType type : types_) {
    if (Has(netdev, gid, type)) continue;
    const auto first = slots_.begin() + static_cast<std::ptrdiff_t>(types_.size());
    const auto free = std::find(first, slots_.end(), std::nullopt);
    if (free != slots_.end()) *free = Slot{gid, type, netdev, hidden_reads};
  }
}

void FakeGidTable::Remove(int netdev, const IpAddress& address) {
  const IpAddress gid = GidOf(address);
  for (std::size_t i = types_.size(); i < slots_.size(); ++i) {
    if (slots_[i] && slots_[i]->netdev == netdev && slots_[i]->gid == gid) slots_[i].reset();
  }
}

void FakeGidTable::CountRead() {
  for (auto& slot : slots_) {
    if (slot && slot->hidden_reads > 0) --slot->hidden_reads;
  }
}

FakeNamespace* FakeState::Namespace(const std::string& name) {
  return FindIf(namespaces, [&](const FakeNamespace& ns) { return ns.name == name; });
}

FakeNetdev* FakeState::Netdev(int id) {
  return FindIf(netdevs, [&](const FakeNetdev& netdev) { return netdev.id == id; });
}

FakeNetdev* FakeState::Find(const std::string& ns, int index) {
  return FindIf(netdevs, [&](const FakeNetdev& n) { return n.ns == ns && n.link.index == index; });
}

FakeNetdev* FakeState::Find(const std::string& ns, const std::string& name) {
  return FindIf(netdevs, [&](const FakeNetdev& n) {
    const auto& more = n.link.alt_names;
    return n.ns == ns && (n.link.name == name || std::find(more.begin(), more.end(), name) != more.end());
  });
}

FakeNetdev* FakeState::OfFunction(const std::string& bdf) {
  return FindIf(netdevs, [&](const FakeNetdev& netdev) { return netdev.bdf == bdf; });
}

FakeFunction* FakeState::Function(const std::string& bdf) {
  return FindIf(functions, [&](const FakeFunction& function) { return function.bdf == bdf; });
}

FakeFunction* FakeState::Vf(const std::string& pf, int vf) {
  return FindIf(functions, [&](const FakeFunction& f) { return !f.pf.empty() && f.pf == pf && f.vf == vf; });
}

FakeRdma* FakeState::Rdma(const std::string& name) {
  return FindIf(rdmas, [&](const FakeRdma& rdma) { return rdma.name == name; });
}

bool FakeState::HasCarrier(const FakeNetdev& netdev) {
  if (!netdev.link.up || !netdev.wire) return false;
  if (netdev.peer != 0) return Netdev(netdev.peer)->link.up;
  const FakeFunction* function = netdev.bdf.empty() ? nullptr : Function(netdev.bdf);
  if (function == nullptr || !function->state) return true;
  const auto state = function->state->link_state.value_or(VfLinkState::kAuto);
  if (state != VfLinkState::kAuto) return state == VfLinkState::kEnable;
  const FakeNetdev* pf = OfFunction(function->pf);
  return pf == nullptr || HasCarrier(*pf);
}

Link FakeState::LinkOf(const FakeNetdev& netdev) {
  Link link = netdev.link;
  link.carrier = HasCarrier(netdev);
  return link;
}

bool FakeState::PortActive(const FakeRdma& rdma) {
  const FakeNetdev* netdev = Netdev(rdma.netdev);
  return !rdma.port_down && netdev != nullptr && HasCarrier(*netdev);
}

bool FakeState::RdmaVisible(const FakeRdma& rdma, const std::string& ns) const {
  return mode == RdmaNetnsMode::kShared || rdma.ns == ns;
}

int FakeState::LowestUverbs() const {
  for (int number = 0;; ++number) {
    const bool taken =
        std::any_of(rdmas.begin(), rdmas.end(), [&](const FakeRdma& rdma) { return rdma.uverbs == number; });
    if (!taken) return number;
  }
}

FakeNetdev& FakeState::AddNetdev(const std::string& ns, const std::string& name) {
  FakeNetdev netdev;
  netdev.id = next_id_++;
  netdev.ns = ns;
  netdev.link.name = name;
  netdev.link.index = Namespace(ns)->next_index++;
  netdev.link.mtu = 1500;
  netdev.link.tx_queue_len = 1000;
  netdev.link.addr_gen_mode = default_addr_gen_mode;
  netdev.link.mac.bytes = {0x0a, 0, 0, 0, 0, static_cast<std::uint8_t>(netdev.id)};
  netdevs.push_back(std::move(netdev));
  ResetSysctls(netdevs.back());
  return netdevs.back();
}

void FakeState::Bind(FakeFunction& function) {
  std::string name = function.netdev_name;
  if (function.was_bound && !function.driver.bind_name.empty()) {
    for (int n = 0; name == function.netdev_name || Find(kHost, name) != nullptr; ++n) {
      name = function.driver.bind_name + std::to_string(n);
    }
  }
  function.was_bound = true;
  FakeNetdev& netdev = AddNetdev(kHost, name);
  netdev.bdf = function.bdf;
  netdev.link.parent_device = function.bdf;
  MacAddress mac = function.burnt_in;
  if (function.state) {
    mac = MacOf(*function.state);
    // Without a MAC from its PF a VF chooses one, a different one every time.
    if (mac.IsZero()) mac.bytes = {0x06, 0, 0, 0, 0, next_random_++};
  }
  netdev.link.mac = mac;
  netdev.link.permanent_mac = mac;
  netdev.device = function.driver.settings;
  ForgetNewer(netdev);
  if (function.rdma_name.empty()) return;
  FakeRdma rdma{next_rdma_index_++, function.rdma_name,         kHost, netdev.id, false, false,
                LowestUverbs(),     FakeGidTable(function.roce)};
  rdma.gids.AddDefaults(netdev.id, mac);
  rdmas.push_back(std::move(rdma));
}

void FakeState::ForgetNewer(FakeNetdev& netdev) const {
  if (release < kAltNames) netdev.link.alt_names.clear();
  std::erase_if(netdev.device.values, [&](const auto& value) { return release < ReleaseOf(value.first); });
}

void FakeState::Unbind(FakeFunction& function) {
  if (const FakeNetdev* netdev = OfFunction(function.bdf); netdev != nullptr) RemoveNetdev(netdev->id);
  std::erase_if(rdmas, [&](const FakeRdma& rdma) { return rdma.name == function.rdma_name; });
}

void FakeState::RemoveNetdev(int id) {
  FakeNetdev* netdev = Netdev(id);
  if (netdev == nullptr) return;
  GoDown(*netdev);
  std::erase_if(rdmas, [&](const FakeRdma& rdma) { return rdma.rxe && rdma.netdev == id; });
  std::erase_if(Namespace(netdev->ns)->neighbours,
                [&](const Neighbour& neighbour) { return neighbour.link == netdev->link.index; });
  const int peer = netdev->peer;
  std::erase_if(netdevs, [&](const FakeNetdev& other) { return other.id == id; });
  std::erase_if(netdevs, [&](const FakeNetdev& other) { return peer != 0 && other.id == peer; });
  const auto is_above = [&](const FakeNetdev& other) { return other.lower == id; };
  for (auto it = netdevs.begin();
       (it = std::find_if(netdevs.begin(), netdevs.end(), is_above)) != netdevs.end();)
    RemoveNetdev(it->id);
}

void FakeState::ReturnToHost(FakeNetdev& netdev) {
  // The device keeps its name, or becomes devINDEX if the host already uses that name.
  std::string name = netdev.link.name;
  if (Find(kHost, name) != nullptr) name = "dev" + std::to_string(netdev.link.index);
  for (int n = 0; Find(kHost, name) != nullptr; ++n) name = "dev" + std::to_string(n);
  // Here the kernel drops alternative names that the host already uses; it would refuse a move.
  std::erase_if(netdev.link.alt_names,
                [&](const std::string& other) { return Find(kHost, other) != nullptr; });
  Enter(netdev, kHost, name);
}

void FakeState::RemoveNamespace(const std::string& name) {
  std::vector<int> ids;
  for (const auto& netdev : netdevs) {
    if (netdev.ns == name) ids.push_back(netdev.id);
  }
  for (const int id : ids) {
    FakeNetdev* netdev = Netdev(id);
    if (netdev == nullptr) continue;  // went with its veth peer
    if (netdev->bdf.empty()) {
      RemoveNetdev(id);
    } else {
      ReturnToHost(*netdev);
    }
  }
  for (auto& rdma : rdmas) {
    if (rdma.ns != name) continue;
    rdma.ns = kHost;
    if (mode == RdmaNetnsMode::kExclusive) {
      rdma.uverbs = -1;
      rdma.uverbs = LowestUverbs();
    }
  }
  std::erase_if(namespaces, [&](const FakeNamespace& ns) { return ns.name == name; });
}

int FakeState::MoveRdma(FakeRdma& rdma, const std::string& target) {
  if (mode == RdmaNetnsMode::kShared || rdma.rxe) return EOPNOTSUPP;
  rdma.ns = target;
  // Its clients are removed and added again, so it gets the lowest free number.
  rdma.uverbs = -1;
  rdma.uverbs = LowestUverbs();
  return 0;
}

int FakeState::AddRxe(const std::string& ns, const std::string& name, const std::string& netdev_name) {
  if (!has_rxe) return EINVAL;
  FakeNetdev* netdev = Find(ns, netdev_name);
  if (netdev == nullptr) return ENODEV;
  if (const FakeRdma* taken = Rdma(name); taken != nullptr) return taken->ns == ns ? EEXIST : ENFILE;
  bool has_one = false;
  ForEachRdmaOn(netdev->id, [&](const FakeRdma& rdma) { has_one = has_one || rdma.rxe; });
  if (has_one) return EEXIST;
  FakeRdma rdma{next_rdma_index_++,
                name,
                ns,
                netdev->id,
                true,
                false,
                LowestUverbs(),
                FakeGidTable({GidType::kRoceV2})};
  rdmas.push_back(std::move(rdma));
  RefillGids(*netdev);
  return 0;
}

}  // namespace railhead::testing
