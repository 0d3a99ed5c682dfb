// FakeKernel::Snapshot(): the state as text, sorted, without numbers that a kernel assigns differently each
// time.
#include <algorithm>

#include "netns/base/text.h"
#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

template <typename T>
std::string Number(const std::optional<T>& value) {
  return value ? std::to_string(static_cast<long>(*value)) : "-";
}

std::string LineOf(const VfSettings& vf) {
  std::string text;
  ForEachVfSetting([&](const char* key, auto setting) {
    text += std::string(text.empty() ? "" : " ") + key + " " + (vf.*setting ? InWords(*(vf.*setting)) : "-");
  });
  return text;
}

std::string TextOf(FakeState& state, const FakeNetdev& netdev) {
  const Link link = state.LinkOf(netdev);
  std::string text = netdev.ns + " link " + link.name + " " + link.mac.ToString() + " mtu " +
                     std::to_string(link.mtu) + (link.up ? " up" : " down") +
                     (link.carrier ? " carrier" : "") + " gen " + Number(link.addr_gen_mode) + " alias '" +
                     link.alias + "' parent '" + link.parent_device + "'";
  if (link.tx_queue_len != 1000) text += " qlen " + std::to_string(link.tx_queue_len);
  if (link.promiscuous) text += " promiscuous";
  if (link.all_multicast) text += " allmulticast";
  auto names = link.alt_names;
  std::sort(names.begin(), names.end());
  if (!names.empty()) text += " also " + Join(names, ",");
  for (const auto& address : netdev.addresses) text += " " + address.ToString();
  for (const auto& [name, value] : netdev.device.values)
    text.append(" ").append(name).append("=").append(value);
  return text;
}

std::string NameOfLink(FakeState& state, const std::string& ns, int index) {
  const FakeNetdev* netdev = state.Find(ns, index);
  return netdev == nullptr ? "gone" : netdev->link.name;
}

void AddNamespaceLines(FakeState& state, const FakeNamespace& ns, std::vector<std::string>& lines) {
  lines.push_back(ns.name + " exists");
  for (const auto& route : ns.routes) {
    lines.push_back(ns.name + " route " + route.destination.ToString() + " via " +
                    (route.gateway ? route.gateway->ToString() : "-") + " src " +
                    (route.source ? route.source->ToString() : "-") + " dev " +
                    NameOfLink(state, ns.name, route.link) + " table " + std::to_string(route.table) +
                    " metric " + std::to_string(route.metric));
  }
  for (const auto& rule : ns.rules) {
    lines.push_back(ns.name + " rule " + std::to_string(rule.family) + " " + std::to_string(rule.priority) +
                    " from " + (rule.from ? rule.from->ToString() : "all") + " oif '" + rule.oif +
                    "' table " + std::to_string(rule.table));
  }
  for (const auto& neighbour : ns.neighbours) {
    lines.push_back(ns.name + " neighbour " + neighbour.address.ToString() + " " + neighbour.mac.ToString() +
                    " dev " + NameOfLink(state, ns.name, neighbour.link));
  }
}

std::string TextOf(FakeState& state, const FakeRdma& rdma) {
  const FakeNetdev* netdev = state.Netdev(rdma.netdev);
  std::string text = "rdma " + rdma.name + (rdma.rxe ? " rxe" : "");
  if (state.mode == RdmaNetnsMode::kExclusive || rdma.rxe) text += " in " + rdma.ns;
  text += " on " + (netdev == nullptr ? "nothing" : netdev->link.name);
  const auto& slots = rdma.gids.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i]) continue;
    text += " [" + std::to_string(i) + "]" + slots[i]->gid.ToString() + "/" +
            std::to_string(static_cast<int>(slots[i]->type));
  }
  return text;
}

}  // namespace

std::string FakeKernel::Snapshot() {
  std::vector<std::string> lines;
  for (const auto& ns : state_.namespaces) AddNamespaceLines(state_, ns, lines);
  for (const auto& changed : state_.ChangedSysctls()) lines.push_back(changed);
  for (const auto& netdev : state_.netdevs) lines.push_back(TextOf(state_, netdev));
  for (const auto& function : state_.functions) {
    if (function.state) lines.push_back("pf " + function.pf + " " + LineOf(*function.state));
  }
  for (const auto& rdma : state_.rdmas) lines.push_back(TextOf(state_, rdma));
  std::sort(lines.begin(), lines.end());
  return Join(lines, "\n");
}

}  // namespace railhead::testing
