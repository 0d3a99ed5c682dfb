#include "netns/nl/netlink_route.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <utility>

#include "netns/base/text.h"
#include "netns/nl/address_messages.h"
#include "netns/nl/ethtool_ioctl.h"
#include "netns/nl/event_waits.h"
#include "netns/nl/link_messages.h"
#include "netns/nl/message.h"
#include "netns/nl/neighbour_messages.h"
#include "netns/nl/route_messages.h"
#include "netns/nl/rule_messages.h"
#include "netns/nl/socket.h"
#include "netns/nl/solicit_neighbour.h"
#include "netns/nl/upper_links.h"
#include "netns/nl/vf_messages.h"

namespace railhead {
namespace {

std::string LinkText(int index) {
  return "interface " + std::to_string(index);
}

// Of a family that the kernel does not have: it was booted with ipv6.disable=1.
bool IsWithoutFamily(const Error& error) {
  return error.sys_errno == EAFNOSUPPORT || error.sys_errno == EOPNOTSUPP;
}

// For a removal: an absent object is not an error.
Result<bool> Removed(const Result<void>& result, std::initializer_list<int> absent, const std::string& what) {
  if (result) return true;
  const int code = result.error().sys_errno;
  if (Contains(absent, code)) return false;
  return Fail(Wrap(result.error(), what));
}

Result<void> CheckFamily(int family) {
  if (family == AF_INET || family == AF_INET6) return {};
  return Fail(ErrorCode::kInvalid, "address family " + std::to_string(family) + " is neither IPv4 nor IPv6");
}

// The hint for the kernel's refusal to change a link.
Error WithLinkHint(Error error, const std::string& name) {
  if (error.sys_errno == EEXIST) {
    error.hint = "the name " + name + " (or an alternative name of the interface) is taken in that namespace";
  } else if (error.sys_errno == EPERM) {
    error.hint = "this needs CAP_NET_ADMIN in both namespaces";
  }
  return error;
}

// Why the kernel refuses an IPv6 address. Without the protocol (ipv6.disable=1) it knows no such family. A
// link below IPv6's smallest MTU has no IPv6 (ENOBUFS, EINVAL before 5.13). A link with disable_ipv6 refuses
// (EACCES). Source: inet6_addr_add in net/ipv6/addrconf.c.
Error WithIpv6Hint(Error error, const IpAddress& address) {
  if (address.IsV4() || !error.hint.empty()) return error;
  const int code = error.sys_errno;
  if (IsWithoutFamily(error)) {
    error.hint =
        "the node's kernel runs without IPv6 (ipv6.disable=1): give this network IPv4 addresses only";
  } else if (code == EACCES) {
    error.hint = "the sysctl disable_ipv6 is set in that namespace: clear it, or give IPv4 addresses only";
  } else if (code == ENOBUFS || code == EINVAL) {
    error.hint = "IPv6 needs an MTU of at least 1280";
  }
  return error;
}

Error WithVfHint(Error error) {
  if (error.sys_errno == EOPNOTSUPP || error.sys_errno == EPROTONOSUPPORT) {
    error.hint = "the PF's driver cannot do it: leave the setting out for this NIC";
  } else if (error.sys_errno == EINVAL && error.hint.empty()) {
    error.hint = "the PF's driver refuses this value or has no such VF";
  }
  return error;
}

class NetlinkRoute final : public RouteApi {
 public:
  NetlinkRoute(nl::Socket socket, NetNs ns) : socket_(std::move(socket)), ns_(std::move(ns)) {}

  Result<std::optional<Link>> FindLink(const std::string& name) override;
  Result<std::optional<Link>> FindLink(int index) override;
  Result<std::optional<Link>> FindLinkOfDevice(const std::string& parent_device) override;
  Result<std::vector<Link>> ListLinks() override;
  Result<void> ChangeLink(int index, const LinkChange& change) override;
  Result<void> MoveLink(int index, const NetNs& target, const std::string& name,
                        std::optional<int> mtu) override;
  Result<std::vector<Link>> ListUppers(int lower, const NetNs& lower_ns) override;
  Result<bool> HasUppers(int lower, const NetNs& elsewhere, const std::string& taken) override;
  Result<bool> DeleteLink(int index) override;
  Result<void> AddAltName(int index, const std::string& name) override;
  Result<bool> DeleteAltName(int index, const std::string& name) override;
  Result<std::optional<VfSettings>> GetVf(int pf_index, int vf) override;
  Result<void> SetVf(int pf_index, int vf, const VfSettings& change) override;
  Result<void> AddAddress(int index, const IpPrefix& address) override;
  Result<bool> DeleteAddress(int index, const IpPrefix& address) override;
  Result<std::vector<LinkAddress>> ListAddresses(int index) override;
  Result<void> AddRoute(const Route& route) override;
  Result<bool> DeleteRoute(const Route& route) override;
  Result<std::vector<Route>> ListRoutes(int family, std::uint32_t table) override;
  Result<void> AddRule(const Rule& rule) override;
  Result<bool> DeleteRule(const Rule& rule) override;
  Result<std::vector<Rule>> ListRules(int family) override;
  Result<std::vector<Neighbour>> ListNeighbours(int index) override;
  Result<void> SetNeighbour(const Neighbour& neighbour) override;
  Result<bool> DeleteNeighbour(const Neighbour& neighbour) override;
  Result<void> ResolveNeighbour(int index, const IpAddress& address) override;
  Result<std::optional<MacAddress>> WaitNeighbour(int index, const IpAddress& address,
                                                  Deadline deadline) override;
  Result<bool> WaitCarrier(int index, Deadline deadline) override;

 private:
  Result<void> SendChange(int index, const LinkChange& change);
  [[nodiscard]] std::string ParentOf(const Link& link) const;
  Result<std::optional<Link>> FindLink(nl::Message message, const std::string& what);

  nl::Socket socket_;
  NetNs ns_;
};

// Before 5.14 only the driver names the parent. A link of a kind (a veth, say) has none, whatever it says.
std::string NetlinkRoute::ParentOf(const Link& link) const {
  if (!link.parent_device.empty() || !link.kind.empty()) return link.parent_device;
  return nl::BusInfo(socket_.fd(), link.name);
}

Result<std::optional<Link>> NetlinkRoute::FindLink(nl::Message message, const std::string& what) {
  std::optional<Link> link;
  const auto got =
      socket_.Get(message, [&](const nl::Received& received) { link = nl::ParseLink(received); });
  if (!got && got.error().sys_errno == ENODEV) return std::nullopt;
  if (!got) return Fail(Wrap(got.error(), "looking up " + what));
  if (link) link->parent_device = ParentOf(*link);
  return link;
}

Result<std::optional<Link>> NetlinkRoute::FindLink(const std::string& name) {
  // The kernel would take "no name" for a malformed request.
  if (name.empty()) return std::nullopt;
  return FindLink(nl::GetLinkMessage(name), "interface " + name);
}

Result<std::optional<Link>> NetlinkRoute::FindLink(int index) {
  if (index <= 0) return std::nullopt;
  return FindLink(nl::GetLinkMessage(index), LinkText(index));
}

Result<std::optional<Link>> NetlinkRoute::FindLinkOfDevice(const std::string& parent_device) {
  if (parent_device.empty()) return std::nullopt;
  // Reads all links without their statistics, then the one link with everything.
  nl::Message message = nl::DumpLinksMessage(true);
  const std::string what = "looking for the interface of " + parent_device;
  const auto links = RH_TRY_WRAP(socket_.Dump<Link>(message, nl::ParseLink), what);
  int lowest = 0;
  for (const Link& link : links) {
    if (ParentOf(link) == parent_device && (lowest == 0 || link.index < lowest)) lowest = link.index;
  }
  auto found = RH_TRY(FindLink(lowest));
  // The driver is asked by name, which a pod can give to another interface meanwhile.
  if (found && found->parent_device != parent_device)
    return Fail(ErrorCode::kBusy, what + ": interfaces there are being renamed", "try again");
  return found;
}

Result<std::vector<Link>> NetlinkRoute::ListLinks() {
  nl::Message message = nl::DumpLinksMessage(false);
  auto links = RH_TRY_WRAP(socket_.Dump<Link>(message, nl::ParseLink), "listing interfaces");
  for (Link& link : links) link.parent_device = ParentOf(link);
  return links;
}

Result<void> NetlinkRoute::SendChange(int index, const LinkChange& change) {
  nl::Message message = nl::ChangeLinkMessage(index, change);
  auto done = socket_.Request(message);
  if (done) return done;
  if (done.error().sys_errno == EAFNOSUPPORT && change.addr_gen_mode == AddrGenMode::kNone) {
    // The kernel has checked the whole message before it changed anything (validate_linkmsg in
    // net/core/rtnetlink.c). Without IPv6 the link gets no automatic address.
    LinkChange without = change;
    without.addr_gen_mode.reset();
    return SendChange(index, without);
  }
  return Fail(
      Wrap(WithLinkHint(std::move(done.error()), change.name.value_or("")), "changing " + LinkText(index)));
}

Result<void> NetlinkRoute::ChangeLink(int index, const LinkChange& change) {
  const bool settings = change.addr_gen_mode || !change.ipv4.empty();
  if (!settings || !change.up.value_or(false)) return SendChange(index, change);
  // do_setlink brings the link up before it reads IFLA_AF_SPEC: in one message
  // the link would get the addresses that addr_gen_mode is to prevent.
  LinkChange before = change;
  before.up.reset();
  RH_TRY(SendChange(index, before));
  LinkChange up;
  up.up = true;
  return SendChange(index, up);
}

Result<void> NetlinkRoute::MoveLink(int index, const NetNs& target, const std::string& name,
                                    std::optional<int> mtu) {
  nl::Message message = nl::MoveLinkMessage(index, target.fd(), name, mtu);
  auto done = socket_.Request(message);
  if (done) return done;
  return Fail(Wrap(WithLinkHint(std::move(done.error()), name),
                   "moving " + LinkText(index) + " to " + target.path() + " as " + name +
                       (mtu ? " with MTU " + std::to_string(*mtu) : "")));
}

Result<std::vector<Link>> NetlinkRoute::ListUppers(int lower, const NetNs& lower_ns) {
  nl::Message dump = nl::DumpLinksMessage(true);
  const std::vector<nl::Stacked> stacked =
      RH_TRY_WRAP(socket_.Dump<nl::Stacked>(dump,
                                            [&](const nl::Received& received) -> std::optional<nl::Stacked> {
                                              auto found = nl::ParseStacked(received);
                                              if (!found || found->lower != lower) return std::nullopt;
                                              return found;
                                            }),
                  "looking for what is on " + LinkText(lower));
  if (stacked.empty()) return std::vector<Link>{};
  std::optional<int> nsid;
  nl::Message message = nl::GetNsidMessage(lower_ns.fd());
  RH_TRY_WRAP(socket_.Get(message, [&](const nl::Received& received) { nsid = nl::ParseNsid(received); }),
              "asking for the number of " + lower_ns.path());
  std::vector<Link> uppers;
  for (const nl::Stacked& one : stacked) {
    const bool there = one.lower_nsid ? one.lower_nsid == nsid : ns_.SameAs(lower_ns);
    if (there) uppers.push_back(one.link);
  }
  return uppers;
}

Result<bool> NetlinkRoute::HasUppers(int lower, const NetNs& elsewhere, const std::string& taken) {
  const std::string what = "looking for what is on " + LinkText(lower);
  auto found = nl::HasUppers(socket_, lower, elsewhere, taken);
  if (found) return found;
  if (found.error().sys_errno != EOPNOTSUPP) return Fail(Wrap(std::move(found.error()), what));
  if (RH_TRY(FindLink(taken)))
    return Fail(ErrorCode::kExists, what + ": both namespaces have an interface " + taken);
  return Fail(ErrorCode::kUnsupported, what + ": the kernel has no macvlan",
              "install the kernel's module macvlan");
}

Result<bool> NetlinkRoute::DeleteLink(int index) {
  nl::Message message = nl::DeleteLinkMessage(index);
  return Removed(socket_.Request(message), {ENODEV}, "removing " + LinkText(index));
}

Result<void> NetlinkRoute::AddAltName(int index, const std::string& name) {
  nl::Message message = nl::AddAltNameMessage(index, name);
  auto done = socket_.Request(message);
  if (done) return done;
  Error error = WithLinkHint(std::move(done.error()), name);
  if (error.sys_errno == EOPNOTSUPP) error.hint = "alternative names need Linux 5.5 or later";
  return Fail(Wrap(std::move(error), "giving " + LinkText(index) + " the alternative name " + name));
}

Result<bool> NetlinkRoute::DeleteAltName(int index, const std::string& name) {
  nl::Message message = nl::DeleteAltNameMessage(index, name);
  // EINVAL: the name is the link's first one or another link's
  // (netdev_name_node_alt_destroy in net/core/dev.c).
  return Removed(socket_.Request(message), {ENOENT, ENODEV, EINVAL},
                 "taking the alternative name " + name + " from " + LinkText(index));
}

Result<std::optional<VfSettings>> NetlinkRoute::GetVf(int pf_index, int vf) {
  nl::Message message = nl::GetVfsMessage(pf_index);
  std::map<int, VfSettings> vfs;
  RH_TRY_WRAP(socket_.Get(message, [&](const nl::Received& received) { vfs = nl::ParseVfs(received); }),
              "reading VF " + std::to_string(vf) + " of " + LinkText(pf_index));
  const auto found = vfs.find(vf);
  return found == vfs.end() ? std::nullopt : std::optional(found->second);
}

Result<void> NetlinkRoute::SetVf(int pf_index, int vf, const VfSettings& change) {
  for (auto& [what, message] : nl::SetVfMessages(pf_index, vf, change)) {
    auto done = socket_.Request(message);
    if (done) continue;
    return Fail(Wrap(WithVfHint(std::move(done.error())),
                     "setting " + what + " on VF " + std::to_string(vf) + " of " + LinkText(pf_index)));
  }
  return {};
}

Result<void> NetlinkRoute::AddAddress(int index, const IpPrefix& address) {
  nl::Message message = nl::AddAddressMessage(index, address);
  auto done = socket_.Request(message);
  if (done) return done;
  return Fail(Wrap(WithIpv6Hint(std::move(done.error()), address.address),
                   "adding address " + address.ToString() + " to " + LinkText(index)));
}

Result<bool> NetlinkRoute::DeleteAddress(int index, const IpPrefix& address) {
  nl::Message message = nl::DeleteAddressMessage(index, address);
  return Removed(socket_.Request(message), {EADDRNOTAVAIL, ENODEV, ENXIO, EAFNOSUPPORT, EOPNOTSUPP},
                 "deleting address " + address.ToString() + " from " + LinkText(index));
}

Result<std::vector<LinkAddress>> NetlinkRoute::ListAddresses(int index) {
  nl::Message message = nl::DumpAddressesMessage(index);
  const auto read = [&](const nl::Received& received) {
    auto found = nl::ParseAddress(received);
    if (found && index != 0 && found->link != index) found.reset();
    return found;
  };
  return RH_TRY_WRAP(socket_.Dump<LinkAddress>(message, read),
                     "listing addresses of " + (index == 0 ? "all interfaces" : LinkText(index)));
}

Result<void> NetlinkRoute::AddRoute(const Route& route) {
  nl::Message message = nl::AddRouteMessage(route);
  RH_TRY_WRAP(socket_.Request(message), "adding route " + route.ToString());
  return {};
}

Result<bool> NetlinkRoute::DeleteRoute(const Route& route) {
  nl::Message message = nl::DeleteRouteMessage(route);
  return Removed(socket_.Request(message), {ESRCH, ENODEV, ENOENT, EAFNOSUPPORT, EOPNOTSUPP},
                 "deleting route " + route.ToString());
}

Result<std::vector<Route>> NetlinkRoute::ListRoutes(int family, std::uint32_t table) {
  RH_TRY(CheckFamily(family));
  nl::Message message = nl::DumpRoutesMessage(family, table);
  auto routes = socket_.Dump<Route>(message, [&](const nl::Received& received) -> std::optional<Route> {
    auto route = nl::ParseRoute(received);
    // For a family that it does not know, the kernel lists all others (rtnl_dump_all).
    if (!route || route->destination.address.Family() != family) return std::nullopt;
    if (table != 0 && route->table != table) return std::nullopt;
    return route;
  });
  // A table comes into being with its first route.
  if (!routes && (routes.error().sys_errno == ENOENT || IsWithoutFamily(routes.error())))
    return std::vector<Route>{};
  if (!routes)
    return Fail(Wrap(std::move(routes.error()), "listing routes of table " + std::to_string(table)));
  return routes;
}

Result<void> NetlinkRoute::AddRule(const Rule& rule) {
  RH_TRY(CheckFamily(rule.family));
  nl::Message message = nl::AddRuleMessage(rule);
  RH_TRY_WRAP(socket_.Request(message), "adding rule " + rule.ToString());
  return {};
}

Result<bool> NetlinkRoute::DeleteRule(const Rule& rule) {
  RH_TRY(CheckFamily(rule.family));
  nl::Message message = nl::DeleteRuleMessage(rule);
  return Removed(socket_.Request(message), {ENOENT, ESRCH, EAFNOSUPPORT, EOPNOTSUPP},
                 "deleting rule " + rule.ToString());
}

Result<std::vector<Rule>> NetlinkRoute::ListRules(int family) {
  RH_TRY(CheckFamily(family));
  nl::Message message = nl::DumpRulesMessage(family);
  auto rules = socket_.Dump<Rule>(message, [&](const nl::Received& received) -> std::optional<Rule> {
    auto rule = nl::ParseRule(received);
    if (!rule || rule->family != family) return std::nullopt;
    return rule;
  });
  if (!rules && IsWithoutFamily(rules.error())) return std::vector<Rule>{};
  if (!rules) return Fail(Wrap(std::move(rules.error()), "listing rules"));
  return rules;
}

Result<std::vector<Neighbour>> NetlinkRoute::ListNeighbours(int index) {
  nl::Message message = nl::DumpNeighboursMessage(index);
  return RH_TRY_WRAP(socket_.Dump<Neighbour>(message,
                                             [&](const nl::Received& received) -> std::optional<Neighbour> {
                                               auto found = nl::ParseNeighbour(received);
                                               if (!found || found->link != index) return std::nullopt;
                                               return found;
                                             }),
                     "listing neighbours of " + LinkText(index));
}

Result<void> NetlinkRoute::SetNeighbour(const Neighbour& neighbour) {
  nl::Message message = nl::SetNeighbourMessage(neighbour);
  RH_TRY_WRAP(socket_.Request(message),
              "setting neighbour " + neighbour.address.ToString() + " on " + LinkText(neighbour.link));
  return {};
}

Result<bool> NetlinkRoute::DeleteNeighbour(const Neighbour& neighbour) {
  nl::Message message = nl::DeleteNeighbourMessage(neighbour);
  return Removed(socket_.Request(message), {ENOENT, ENODEV, EAFNOSUPPORT, EOPNOTSUPP},
                 "deleting neighbour " + neighbour.address.ToString() + " from " + LinkText(neighbour.link));
}

Result<void> NetlinkRoute::ResolveNeighbour(int index, const IpAddress& address) {
  const std::string what = "resolving " + address.ToString() + " on " + LinkText(index);
  Neighbour neighbour;
  neighbour.link = index;
  neighbour.address = address;
  nl::Message message = nl::ResolveNeighbourMessage(neighbour);
  RH_TRY_WRAP(socket_.Request(message), what);
  if (address.IsV4()) return {};
  const auto link = RH_TRY_WRAP(FindLink(index), what);
  // The link may have no address to ask from yet: the kernel may ask later.
  if (link) RH_TRY_WRAP(nl::SolicitNeighbour(ns_, index, link->mac, address), what);
  return {};
}

Result<std::optional<MacAddress>> NetlinkRoute::WaitNeighbour(int index, const IpAddress& address,
                                                              Deadline deadline) {
  const auto ask = [&] { return ResolveNeighbour(index, address); };
  return RH_TRY_WRAP(nl::WaitNeighbour(socket_, ns_, index, address, ask, deadline),
                     "waiting for neighbour " + address.ToString() + " on " + LinkText(index));
}

Result<bool> NetlinkRoute::WaitCarrier(int index, Deadline deadline) {
  auto ready = nl::WaitCarrier(socket_, ns_, index, deadline);
  if (ready) return ready;
  Error error = Wrap(std::move(ready.error()), "waiting for carrier of " + LinkText(index));
  if (error.sys_errno == ENODEV) error.hint = "something deleted or moved it during the wait";
  return Fail(std::move(error));
}

}  // namespace

Result<std::unique_ptr<RouteApi>> OpenNetlinkRoute(const NetNs& ns) {
  UniqueFd fd(fcntl(ns.fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return FailSys(errno, "keeping network namespace " + ns.path());
  NetNs own = RH_TRY(NetNs::FromFd(std::move(fd), ns.path()));
  std::optional<nl::Socket> socket;
  const auto open = [&]() -> Result<void> {
    socket = RH_TRY(nl::Socket::Open(NETLINK_ROUTE));
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), "opening rtnetlink in " + ns.path());
  return std::make_unique<NetlinkRoute>(std::move(*socket), std::move(own));
}

}  // namespace railhead
