// bare_attach: the kernel's share of an attachment, and nothing else.
//
//   bare_attach add|del NAME=VALUE...
//
// `add` sends the requests that give the same result as `railhead`. It sets the VF, moves the device with
// name and MTU, and sets link, address, up, routes and rules. It then waits for carrier, sends the
// announcement, makes soft RoCE and waits for its GID. `del` undoes this. Both read no configuration, make no
// plan, write no file and allocate no address. The time that a plugin needs beyond this is the plugin's own
// cost. As in CNI, each direction is one process.
//
//   netns=PATH ifname=NAME netdev=NAME address=A.B.C.D/L gateway=A.B.C.D
//   route=PREFIX table=N mtu=N [pf=NAME vf=N vlan=N] [rxe=NAME]
//
// Exit status: 0, or 1 with the reason on stderr.
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "netns/base/text.h"
#include "netns/linux_kernel.h"

namespace railhead::bench {
namespace {

constexpr auto kWait = std::chrono::seconds(120);  // emulated machines are slow
constexpr std::uint32_t kPriorityFrom = 1000;
constexpr std::uint32_t kPriorityOif = 1001;

struct Wanted {
  std::string netns;
  std::string ifname;
  std::string netdev;
  IpPrefix address;
  IpAddress gateway;
  IpPrefix route;
  std::uint32_t table = 0;
  int mtu = 0;
  std::string pf;  // empty: no VF settings
  int vf = 0;
  int vlan = 0;
  std::string rxe;  // empty: none
};

Result<Wanted> ReadArguments(int argc, char** argv) {
  std::map<std::string, std::string> given;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto equals = argument.find('=');
    if (equals == std::string::npos) return Fail(ErrorCode::kInvalid, "'" + argument + "' is not NAME=VALUE");
    given[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
  const auto number = [&](const char* name) { return static_cast<int>(ParseInt(given[name]).value_or(0)); };
  const auto address = IpPrefix::Parse(given["address"]);
  const auto gateway = IpAddress::Parse(given["gateway"]);
  const auto route = IpPrefix::Parse(given["route"]);
  if (!address || !gateway || !route) {
    return Fail(ErrorCode::kInvalid, "address=, gateway= and route= are needed");
  }
  return Wanted{given["netns"],
                given["ifname"],
                given["netdev"],
                *address,
                *gateway,
                *route,
                static_cast<std::uint32_t>(number("table")),
                number("mtu"),
                given["pf"],
                number("vf"),
                number("vlan"),
                given["rxe"]};
}

// The sockets of one run.
struct Sockets {
  NetNs host_ns;
  NetNs pod_ns;
  std::unique_ptr<RouteApi> host;
  std::unique_ptr<RouteApi> pod;
};

Result<Sockets> Open(Kernel& kernel, const Wanted& wanted) {
  NetNs host_ns = RH_TRY(kernel.HostNetns());
  NetNs pod_ns = RH_TRY(kernel.OpenNetns(wanted.netns));
  auto host = RH_TRY(kernel.OpenRoute(host_ns));
  auto pod = RH_TRY(kernel.OpenRoute(pod_ns));
  return Sockets{std::move(host_ns), std::move(pod_ns), std::move(host), std::move(pod)};
}

Result<Link> Find(RouteApi& route, const std::string& name) {
  auto link = RH_TRY(route.FindLink(name));
  if (!link) return Fail(ErrorCode::kNotFound, "there is no interface " + name);
  return *std::move(link);
}

Result<void> SetVlan(RouteApi& host, const Wanted& wanted, int vlan) {
  if (wanted.pf.empty()) return {};
  const Link pf = RH_TRY(Find(host, wanted.pf));
  VfSettings change;
  change.vlan = VfVlan{vlan};
  return host.SetVf(pf.index, wanted.vf, change);
}

std::vector<Route> RoutesOf(const Wanted& wanted, int link) {
  Route connected;
  connected.destination = wanted.address.Network();
  connected.source = wanted.address.address;
  connected.link = link;
  connected.table = wanted.table;
  connected.scope = RouteScope::kLink;
  Route through;
  through.destination = wanted.route;
  through.gateway = wanted.gateway;
  through.source = wanted.address.address;
  through.link = link;
  through.table = wanted.table;
  Route in_main = through;
  in_main.table = kTableMain;
  in_main.metric = 20'000 + wanted.table;
  return {connected, through, in_main};
}

std::vector<Rule> RulesOf(const Wanted& wanted) {
  return {{AF_INET, kPriorityFrom, IpPrefix::Host(wanted.address.address), "", wanted.table},
          {AF_INET, kPriorityOif, std::nullopt, wanted.ifname, wanted.table}};
}

Result<void> AwaitGid(Kernel& kernel, const NetNs& pod, const Wanted& wanted) {
  const GidRequest gid{GidOf(wanted.address.address), GidType::kRoceV2, wanted.ifname};
  const auto found = RH_TRY(kernel.WaitGid(pod, wanted.rxe, gid, std::chrono::steady_clock::now() + kWait));
  if (found) return {};
  return Fail(ErrorCode::kTimeout, wanted.rxe + " got no GID of " + wanted.address.ToString());
}

Result<void> Add(const Wanted& wanted) {
  LinuxKernel kernel{Root()};
  const Sockets sockets = RH_TRY(Open(kernel, wanted));
  const Link on_host = RH_TRY(Find(*sockets.host, wanted.netdev));
  RH_TRY(SetVlan(*sockets.host, wanted, wanted.vlan));
  RH_TRY(sockets.host->MoveLink(on_host.index, sockets.pod_ns, wanted.ifname, wanted.mtu));
  const Link link = RH_TRY(Find(*sockets.pod, wanted.ifname));
  LinkChange settings;
  settings.addr_gen_mode = AddrGenMode::kNone;
  settings.ipv4 = {{Ipv4Conf::kArpIgnore, 1}, {Ipv4Conf::kArpAnnounce, 2}, {Ipv4Conf::kRpFilter, 2}};
  RH_TRY(sockets.pod->ChangeLink(link.index, settings));
  RH_TRY(sockets.pod->AddAddress(link.index, wanted.address));
  LinkChange up;
  up.up = true;
  RH_TRY(sockets.pod->ChangeLink(link.index, up));
  for (const auto& route : RoutesOf(wanted, link.index)) RH_TRY(sockets.pod->AddRoute(route));
  for (const auto& rule : RulesOf(wanted)) RH_TRY(sockets.pod->AddRule(rule));
  if (!RH_TRY(sockets.pod->WaitCarrier(link.index, std::chrono::steady_clock::now() + kWait))) {
    return Fail(ErrorCode::kTimeout, wanted.ifname + " has no carrier");
  }
  RH_TRY(kernel.Announce(sockets.pod_ns, link, {wanted.address.address}));
  if (wanted.rxe.empty()) return {};
  const auto rdma = RH_TRY(kernel.OpenRdma(sockets.pod_ns));
  RH_TRY(rdma->AddRxe(wanted.rxe, wanted.ifname));
  return AwaitGid(kernel, sockets.pod_ns, wanted);
}

Result<void> Del(const Wanted& wanted) {
  LinuxKernel kernel{Root()};
  const Sockets sockets = RH_TRY(Open(kernel, wanted));
  for (const auto& rule : RulesOf(wanted)) RH_TRY(sockets.pod->DeleteRule(rule));
  if (!wanted.rxe.empty()) {
    const auto rdma = RH_TRY(kernel.OpenRdma(sockets.pod_ns));
    RH_TRY(rdma->DeleteRxe(wanted.rxe));
  }
  const Link in_pod = RH_TRY(Find(*sockets.pod, wanted.ifname));
  RH_TRY(sockets.pod->MoveLink(in_pod.index, sockets.host_ns, wanted.netdev, wanted.mtu));
  return SetVlan(*sockets.host, wanted, 0);
}

int Main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command != "add" && command != "del") {
    (void)std::fputs("usage: bare_attach add|del NAME=VALUE...\n", stderr);
    return 1;
  }
  const auto wanted = ReadArguments(argc, argv);
  const auto done = !wanted            ? Result<void>(Fail(wanted.error()))
                    : command == "add" ? Add(*wanted)
                                       : Del(*wanted);
  if (done) return 0;
  (void)std::fprintf(stderr, "bare_attach %s: %s\n", command.c_str(), Describe(done.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace railhead::bench

int main(int argc, char** argv) {
  return railhead::bench::Main(argc, argv);
}
