// RouteApi in one namespace of a FakeKernel.
#include <linux/if_addr.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

std::string Text(int index) {
  return "interface " + std::to_string(index);
}

std::string TextOf(const Route& route) {
  std::string text = route.destination.ToString();
  if (route.gateway) text += " via " + route.gateway->ToString();
  return text + " dev " + std::to_string(route.link) + " table " + std::to_string(route.table);
}

std::string TextOf(const Rule& rule) {
  std::string text = std::to_string(rule.priority) + ":";
  if (rule.from) text += " from " + rule.from->ToString();
  if (!rule.oif.empty()) text += " oif " + rule.oif;
  return text + " lookup " + std::to_string(rule.table);
}

std::string TextOf(const LinkChange& change) {
  std::string text;
  if (change.name) text += " name " + *change.name;
  if (change.mac) text += " mac " + change.mac->ToString();
  if (change.mtu) text += " mtu " + std::to_string(*change.mtu);
  if (change.up) text += *change.up ? " up" : " down";
  if (change.addr_gen_mode) text += " addrgenmode";
  if (!change.ipv4.empty()) text += " ipv4-conf";
  if (change.alias) text += " alias '" + *change.alias + "'";
  if (change.tx_queue_len) text += " qlen " + std::to_string(*change.tx_queue_len);
  if (change.promiscuous) text += *change.promiscuous ? " promisc on" : " promisc off";
  if (change.all_multicast) text += *change.all_multicast ? " allmulticast on" : " allmulticast off";
  return text;
}

std::string TextOf(const VfSettings& change) {
  std::string text;
  ForEachVfSetting([&](const char* key, auto setting) {
    if (change.*setting) text += " " + std::string(key) + " " + InWords(*(change.*setting));
  });
  return text;
}

// Only the first of several settings: the result when the kernel refuses a later one.
VfSettings FirstOf(const VfSettings& change) {
  VfSettings first;
  ForEachVfSetting([&](const char* /*key*/, auto setting) {
    if (first.Empty()) first.*setting = change.*setting;
  });
  return first;
}

class FakeRoute final : public RouteApi {
 public:
  FakeRoute(FakeKernel& kernel, std::string ns) : kernel_(kernel), ns_(std::move(ns)) {}

  Result<std::optional<Link>> FindLink(const std::string& name) override {
    return Found("FindLink", name,
                 [&](const FakeNetdev& netdev) { return state().Find(ns_, name) == &netdev; });
  }
  Result<std::optional<Link>> FindLink(int index) override {
    return Found("FindLink", Text(index),
                 [&](const FakeNetdev& netdev) { return netdev.link.index == index; });
  }
  Result<std::optional<Link>> FindLinkOfDevice(const std::string& parent) override {
    return Found("FindLinkOfDevice", parent,
                 [&](const FakeNetdev& netdev) { return netdev.link.parent_device == parent; });
  }

  Result<std::vector<Link>> ListLinks() override {
    if (const auto injected = Begin("ListLinks", "")) return FailSys(injected.error, "listing interfaces");
    std::vector<Link> links;
    for (const auto& netdev : state().netdevs) {
      if (netdev.ns == ns_) links.push_back(state().LinkOf(netdev));
    }
    return links;
  }

  Result<void> ChangeLink(int index, const LinkChange& change) override {
    const std::string what = "changing " + Text(index);
    const auto injected = Begin("ChangeLink", Text(index) + TextOf(change));
    if (injected.Refused()) return FailSys(injected.error, what);
    FakeNetdev* netdev = state().Find(ns_, index);
    if (netdev == nullptr) return kernel_.Finish(ENODEV, what);
    const bool disturbs = change.mac || change.up.value_or(false);
    if (const int refusal = disturbs ? kernel_.RefusalOfReset(netdev->bdf) : 0; refusal != 0)
      return kernel_.Finish(refusal, what);
    LinkChange done = change;
    if (injected) done.up.reset();
    const int error = state().Change(*netdev, done);
    return kernel_.Finish(injected ? injected.error : error, what);
  }

  Result<void> MoveLink(int index, const NetNs& target, const std::string& name,
                        std::optional<int> mtu) override {
    const std::string what = "moving " + Text(index) + " to " + target.path() + " as " + name;
    const auto injected = Begin("MoveLink", Text(index) + " to " + target.path() + " as " + name);
    if (injected.Refused()) return FailSys(injected.error, what);
    FakeNetdev* netdev = state().Find(ns_, index);
    const auto to = kernel_.NameOf(target);
    if (netdev == nullptr) return kernel_.Finish(ENODEV, what);
    if (!to) return kernel_.Finish(EINVAL, what);
    if (injected) {
      (void)state().Move(*netdev, *to, netdev->link.name, std::nullopt);
      return kernel_.Finish(injected.error, what);
    }
    return kernel_.Finish(state().Move(*netdev, *to, name, mtu), what);
  }

  Result<std::vector<Link>> ListUppers(int lower, const NetNs& lower_ns) override {
    const std::string what = Text(lower) + " of " + lower_ns.path();
    if (const auto injected = Begin("ListUppers", what)) return FailSys(injected.error, what);
    std::vector<Link> uppers;
    const auto name = kernel_.NameOf(lower_ns);
    const FakeNetdev* below = name ? state().Find(*name, lower) : nullptr;
    for (const auto& netdev : state().netdevs) {
      if (below != nullptr && netdev.ns == ns_ && netdev.lower == below->id)
        uppers.push_back(state().LinkOf(netdev));
    }
    return uppers;
  }
  Result<bool> HasUppers(int lower, const NetNs& elsewhere, const std::string& taken) override {
    const std::string what = "looking for what is on " + Text(lower);
    if (const auto injected = Begin("HasUppers", Text(lower))) return FailSys(injected.error, what);
    const FakeNetdev* below = state().Find(ns_, lower);
    const auto other = kernel_.NameOf(elsewhere);
    if (below == nullptr || !other) return FailSys(ENODEV, what);
    if (state().Find(ns_, taken) != nullptr) return FailSys(EEXIST, what);
    if (state().Find(*other, taken) == nullptr) return FailSys(ENOENT, what);
    return std::ranges::any_of(state().netdevs,
                               [&](const FakeNetdev& netdev) { return netdev.lower == below->id; });
  }
  Result<bool> DeleteLink(int index) override {
    return Deleted(OnLink("DeleteLink", index, "", [&](FakeNetdev& netdev) {
      if (!netdev.bdf.empty()) return EOPNOTSUPP;  // rtnl_delete_link: it has no rtnl_link_ops
      state().RemoveNetdev(netdev.id);
      return 0;
    }));
  }
  Result<void> AddAltName(int index, const std::string& name) override {
    return OnLink("AddAltName", index, name,
                  [&](FakeNetdev& netdev) { return state().AddAltName(netdev, name); });
  }
  Result<bool> DeleteAltName(int index, const std::string& name) override {
    return Deleted(OnLink("DeleteAltName", index, name, [&](FakeNetdev& netdev) {
      const int error = state().DeleteAltName(netdev, name);
      return error == EINVAL ? ENOENT : error;
    }));
  }

  Result<std::optional<VfSettings>> GetVf(int pf_index, int vf) override {
    const std::string what = "reading VF " + std::to_string(vf) + " of " + Text(pf_index);
    if (const auto injected = Begin("GetVf", Text(pf_index) + " vf " + std::to_string(vf))) {
      return FailSys(injected.error, what);
    }
    const FakeNetdev* pf = state().Find(ns_, pf_index);
    if (pf == nullptr) return FailSys(ENODEV, what);
    const FakeFunction* function = state().Vf(pf->bdf, vf);
    return function == nullptr ? std::nullopt : function->state;
  }

  Result<void> SetVf(int pf_index, int vf, const VfSettings& change) override {
    const std::string what = "setting VF " + std::to_string(vf) + " of " + Text(pf_index);
    const auto injected = Begin("SetVf", Text(pf_index) + " vf " + std::to_string(vf) + TextOf(change));
    if (injected.Refused()) return FailSys(injected.error, what);
    const FakeNetdev* pf = state().Find(ns_, pf_index);
    const FakeFunction* function = pf == nullptr ? nullptr : state().Function(pf->bdf);
    if (pf == nullptr) return kernel_.Finish(ENODEV, what);
    if (function == nullptr) return kernel_.Finish(EOPNOTSUPP, what);
    const int error = state().SetVf(*function, vf, injected ? FirstOf(change) : change);
    const FakeFunction* reset = change.mac ? state().Vf(function->bdf, vf) : nullptr;
    if (reset != nullptr) kernel_.BeginReset(reset->bdf);
    return kernel_.Finish(injected ? injected.error : error, what);
  }

  Result<void> AddAddress(int index, const IpPrefix& address) override {
    return OnLink("AddAddress", index, address.ToString(),
                  [&](FakeNetdev& netdev) { return state().AddAddress(netdev, address); });
  }
  Result<bool> DeleteAddress(int index, const IpPrefix& address) override {
    return Deleted(OnLink("DeleteAddress", index, address.ToString(),
                          [&](FakeNetdev& netdev) { return state().DeleteAddress(netdev, address); }));
  }
  Result<std::vector<LinkAddress>> ListAddresses(int index) override {
    const std::string what = "listing addresses of " + Text(index);
    if (const auto injected = Begin("ListAddresses", Text(index))) return FailSys(injected.error, what);
    std::vector<LinkAddress> list;
    for (const FakeNetdev& netdev : state().netdevs) {
      if (netdev.ns != ns_ || (index != 0 && netdev.link.index != index)) continue;
      for (const IpPrefix& prefix : netdev.addresses) {
        const auto flags = netdev.address_flags.find(prefix);
        list.push_back(flags == netdev.address_flags.end() ? LinkAddress{.flags = IFA_F_PERMANENT}
                                                           : flags->second);
        list.back().link = netdev.link.index;
        list.back().prefix = prefix;
      }
    }
    return list;
  }

  Result<void> AddRoute(const Route& route) override {
    return InNamespace("AddRoute", TextOf(route),
                       [&](FakeNamespace&) { return state().AddRoute(ns_, route); });
  }
  Result<bool> DeleteRoute(const Route& route) override {
    return Deleted(InNamespace("DeleteRoute", TextOf(route),
                               [&](FakeNamespace&) { return state().DeleteRoute(ns_, route); }));
  }
  Result<std::vector<Route>> ListRoutes(int family, std::uint32_t table) override {
    if (const auto injected = Begin("ListRoutes", std::to_string(table))) {
      return FailSys(injected.error, "listing routes");
    }
    std::vector<Route> routes;
    const FakeNamespace* ns = state().Namespace(ns_);
    if (ns == nullptr) return routes;
    for (const auto& route : ns->routes) {
      if (route.destination.address.Family() == family && (table == 0 || route.table == table)) {
        routes.push_back(route);
      }
    }
    return routes;
  }

  Result<void> AddRule(const Rule& rule) override {
    return InNamespace("AddRule", TextOf(rule), [&](FakeNamespace& ns) {
      if (std::find(ns.rules.begin(), ns.rules.end(), rule) != ns.rules.end()) return EEXIST;
      ns.rules.push_back(rule);
      return 0;
    });
  }
  Result<bool> DeleteRule(const Rule& rule) override {
    return Deleted(InNamespace("DeleteRule", TextOf(rule),
                               [&](FakeNamespace& ns) { return std::erase(ns.rules, rule) ? 0 : ENOENT; }));
  }
  Result<std::vector<Rule>> ListRules(int family) override {
    if (const auto injected = Begin("ListRules", "")) return FailSys(injected.error, "listing rules");
    std::vector<Rule> rules;
    if (const FakeNamespace* ns = state().Namespace(ns_); ns != nullptr) rules = ns->rules;
    std::erase_if(rules, [&](const Rule& rule) { return rule.family != family; });
    return rules;
  }

  Result<std::vector<Neighbour>> ListNeighbours(int index) override {
    if (const auto injected = Begin("ListNeighbours", Text(index))) {
      return FailSys(injected.error, "listing neighbours");
    }
    std::vector<Neighbour> neighbours;
    if (const FakeNamespace* ns = state().Namespace(ns_); ns != nullptr) neighbours = ns->neighbours;
    std::erase_if(neighbours, [&](const Neighbour& neighbour) { return neighbour.link != index; });
    return neighbours;
  }
  Result<void> SetNeighbour(const Neighbour& neighbour) override {
    return InNamespace("SetNeighbour", neighbour.address.ToString(), [&](FakeNamespace& ns) {
      std::erase_if(ns.neighbours, Same(neighbour));
      ns.neighbours.push_back(neighbour);
      return 0;
    });
  }
  Result<bool> DeleteNeighbour(const Neighbour& neighbour) override {
    return Deleted(InNamespace("DeleteNeighbour", neighbour.address.ToString(), [&](FakeNamespace& ns) {
      return std::erase_if(ns.neighbours, Same(neighbour)) ? 0 : ENOENT;
    }));
  }

  Result<void> ResolveNeighbour(int index, const IpAddress& address) override {
    return OnLink("ResolveNeighbour", index, address.ToString(), [&](FakeNetdev& netdev) {
      state().Resolve(netdev, address);
      return 0;
    });
  }
  Result<std::optional<MacAddress>> WaitNeighbour(int index, const IpAddress& address, Deadline) override {
    const std::string what = address.ToString() + " on " + Text(index);
    if (const auto injected = Begin("WaitNeighbour", what)) {
      return FailSys(injected.error, "waiting for neighbour " + what);
    }
    const FakeNamespace* ns = state().Namespace(ns_);
    const FakeNetdev* netdev = state().Find(ns_, index);
    if (ns == nullptr || netdev == nullptr) return std::nullopt;
    const auto known = [&] {
      return std::find_if(ns->neighbours.begin(), ns->neighbours.end(), Same({address, {}, index}));
    };
    if (known() == ns->neighbours.end()) return std::nullopt;
    if (known()->mac.IsZero()) state().Resolve(*netdev, address);
    return known()->mac.IsZero() ? std::nullopt : std::optional(known()->mac);
  }

  // The fake changes nothing by itself, so waiting for carrier would not help.
  Result<bool> WaitCarrier(int index, Deadline) override {
    const std::string what = "waiting for carrier of " + Text(index);
    if (const auto injected = Begin("WaitCarrier", Text(index))) return FailSys(injected.error, what);
    const FakeNetdev* netdev = state().Find(ns_, index);
    if (netdev == nullptr) return Fail(ErrorCode::kNotFound, what + ": it is gone");
    return state().HasCarrier(*netdev);
  }

 private:
  FakeState& state() { return kernel_.state(); }
  FakeKernel::Injected Begin(const std::string& call, const std::string& what) {
    const bool host = ns_ == kHost;
    return kernel_.Begin(call, (host ? "host: " : "pod: ") + what);
  }
  static std::function<bool(const Neighbour&)> Same(const Neighbour& wanted) {
    return [wanted](const Neighbour& n) { return n.link == wanted.link && n.address == wanted.address; };
  }

  template <typename F>
  Result<std::optional<Link>> Found(const std::string& call, const std::string& what, F&& wanted) {
    if (const auto injected = Begin(call, what)) return FailSys(injected.error, "looking up " + what);
    std::optional<Link> found;
    for (const auto& netdev : state().netdevs) {
      if (netdev.ns == ns_ && wanted(netdev) && (!found || netdev.link.index < found->index)) {
        found = state().LinkOf(netdev);
      }
    }
    return found;
  }

  template <typename F>
  Result<void> OnLink(const std::string& call, int index, const std::string& what, F&& action) {
    const std::string text = what + " on " + Text(index);
    if (const auto injected = Begin(call, text)) return FailSys(injected.error, call + " " + text);
    FakeNetdev* netdev = state().Find(ns_, index);
    return kernel_.Finish(netdev == nullptr ? ENODEV : action(*netdev), call + " " + text);
  }

  template <typename F>
  Result<void> InNamespace(const std::string& call, const std::string& what, F&& action) {
    if (const auto injected = Begin(call, what)) return FailSys(injected.error, call + " " + what);
    FakeNamespace* ns = state().Namespace(ns_);
    return kernel_.Finish(ns == nullptr ? ENODEV : action(*ns), call + " " + what);
  }

  static Result<bool> Deleted(const Result<void>& done) {
    if (done) return true;
    switch (done.error().sys_errno) {
      case ENOENT:
      case ESRCH:
      case ENODEV:
      case EADDRNOTAVAIL:
        return false;
      default:
        return Fail(done.error());
    }
  }

  FakeKernel& kernel_;
  std::string ns_;
};

}  // namespace

std::unique_ptr<RouteApi> MakeFakeRoute(FakeKernel& kernel, const std::string& ns) {
  return std::make_unique<FakeRoute>(kernel, ns);
}

}  // namespace railhead::testing
