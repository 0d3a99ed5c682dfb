// ADD: what it makes, what its result says, and when it has to fail.
#include <sys/socket.h>

#include <algorithm>

#include "netns/base/text.h"
#include "netns/nl/netlink_route.h"
#include "tests/system/conformance/check.h"
#include "tests/system/conformance/result_shape.h"

namespace railhead::conformance {
namespace {

Result<Link> Required(const Attachment& attachment) {
  const auto link = RH_TRY(Fixture::LinkOf(attachment));
  if (!link) {
    return Fail(ErrorCode::kConflict, "there is no interface " + attachment.ifname + " in the container");
  }
  return *link;
}

// The result's entry for CNI_IFNAME, with or without its sandbox.
Result<Json> EntryOf(const Attachment& attachment) {
  for (const auto& interface : Objects(attachment.result, "interfaces")) {
    if (Text(interface, "name") == attachment.ifname) return interface;
  }
  return Fail(ErrorCode::kConflict,
              "the result does not list " + attachment.ifname + ": " + attachment.result.dump());
}

Result<void> PrintsOneObject(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  Request request;
  request.command = "ADD";
  const Outcome outcome = fixture.Call(*attachment, request);
  RH_TRY(Expect(outcome.Succeeded(), "ADD failed: " + outcome.Describe()));
  const auto json = ParseJson(outcome.out);
  return Expect(json && json->is_object(),
                "standard output is not one JSON object and nothing else: " + outcome.Describe());
}

Result<void> MakesInterface(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  (void)RH_TRY(Required(*attachment));
  return {};
}

Result<void> BringsUp(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const Link link = RH_TRY(Required(*attachment));
  return Expect(link.up, attachment->ifname + " is down after ADD");
}

Result<void> ListsInterface(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const Json entry = RH_TRY(EntryOf(*attachment));
  return Expect(Text(entry, "sandbox") == attachment->netns,
                "its sandbox is not CNI_NETNS, " + attachment->netns + ": " + entry.dump());
}

Result<void> TellsMac(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const Json entry = RH_TRY(EntryOf(*attachment));
  const Link link = RH_TRY(Required(*attachment));
  return Expect(ToLower(Text(entry, "mac")) == link.mac.ToString(),
                "the interface has " + link.mac.ToString() + ", the result says " + entry.dump());
}

Result<void> TellsMtu(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const Json entry = RH_TRY(EntryOf(*attachment));
  const Link link = RH_TRY(Required(*attachment));
  return Expect(Number(entry, "mtu") == link.mtu,
                "the interface has MTU " + std::to_string(link.mtu) + ", the result says " + entry.dump());
}

Result<void> TellsAddresses(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const Link link = RH_TRY(Required(*attachment));
  const auto api = RH_TRY(Fixture::RouteIn(*attachment));
  const auto index = FindInterface(attachment->result, attachment->ifname, attachment->netns);
  std::vector<IpPrefix> reported;
  for (const auto& ip : IpsOf(attachment->result)) {
    if (ip.interface < 0 || (index && static_cast<std::size_t>(ip.interface) == *index))
      reported.push_back(ip.address);
  }
  const auto has = [](const std::vector<IpPrefix>& list, const IpPrefix& address) {
    return std::find(list.begin(), list.end(), address) != list.end();
  };
  std::vector<IpPrefix> real;
  for (const LinkAddress& address : RH_TRY(api->ListAddresses(link.index))) real.push_back(address.prefix);
  for (const auto& address : reported) {
    RH_TRY(Expect(has(real, address), "the result has " + address.ToString() + ", the interface has not"));
  }
  for (const auto& address : real) {
    if (address.address.IsLinkLocal()) continue;
    RH_TRY(Expect(has(reported, address), "the interface has " + address.ToString() +
                                              ", the result has not: " + attachment->result.dump()));
  }
  return {};
}

Result<void> IndexesAddresses(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const auto ips = IpsOf(attachment->result);
  if (ips.empty()) return fixture.NotApplicable("the plugin gives no address");
  const auto index = FindInterface(attachment->result, attachment->ifname, attachment->netns);
  for (const auto& ip : ips) {
    RH_TRY(Expect(index && ip.interface == static_cast<int>(*index),
                  ip.address.ToString() + " does not refer to " + attachment->ifname + ": " +
                      attachment->result.dump()));
  }
  return {};
}

Result<void> MakesRoutes(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const auto routes = Objects(attachment->result, "routes");
  if (routes.empty()) return fixture.NotApplicable("the result has no routes");
  const auto api = RH_TRY(Fixture::RouteIn(*attachment));
  auto real = RH_TRY(api->ListRoutes(AF_INET, 0));
  const auto v6 = RH_TRY(api->ListRoutes(AF_INET6, 0));
  real.insert(real.end(), v6.begin(), v6.end());
  for (const auto& route : routes) {
    const auto wanted = IpPrefix::Parse(Text(route, "dst"));
    const bool there = wanted && std::any_of(real.begin(), real.end(), [&](const Route& other) {
                         return other.destination == wanted->Network();
                       });
    RH_TRY(Expect(there, "the container has no route " + route.dump()));
  }
  return {};
}

Result<void> TellsHostInterfaces(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const NetNs host = RH_TRY(NetNs::Current());
  const auto api = RH_TRY(OpenNetlinkRoute(host));
  for (const auto& interface : Objects(attachment->result, "interfaces")) {
    if (!Text(interface, "sandbox").empty()) continue;
    const auto link = RH_TRY(api->FindLink(Text(interface, "name")));
    RH_TRY(Expect(link.has_value(), "the host has no interface " + interface.dump()));
    const std::string mac = ToLower(Text(interface, "mac"));
    RH_TRY(
        Expect(mac.empty() || link->kind == "bridge" || mac == link->mac.ToString(),
               "the host's interface has " + link->mac.ToString() + ", the result says " + interface.dump()));
  }
  return {};
}

Result<void> RefusesTakenName(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  RH_TRY(Fixture::OccupyName(*attachment));
  const auto before = RH_TRY(Fixture::See(*attachment));
  Request request;
  request.command = "ADD";
  RH_TRY(fixture.MustFail(*attachment, request, "although the container has an interface of this name"));
  return fixture.ExpectSame(*attachment, before, "the refused ADD");
}

Result<void> RefusedLeavesNoTrace(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  RH_TRY(Fixture::OccupyName(*attachment));
  const auto host = RH_TRY(Fixture::SeeHost());
  Request request;
  request.command = "ADD";
  RH_TRY(fixture.MustFail(*attachment, request, "although the container has an interface of this name"));
  RH_TRY(fixture.ExpectHostSame(host, "the refused ADD"));
  if (fixture.target().IpamType().empty()) return {};
  return Expect(!fixture.AddressHeld(*attachment).value_or(false),
                "an address is still held after the refused ADD");
}

Result<void> RefusesSecond(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  Request request;
  request.command = "ADD";
  return fixture.MustFail(*attachment, request, "a second time for the same container and interface");
}

Result<void> SecondHarmsNothing(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const auto container = RH_TRY(Fixture::See(*attachment));
  const bool held = fixture.AddressHeld(*attachment).value_or(false);
  Request request;
  request.command = "ADD";
  (void)fixture.Call(*attachment, request);
  RH_TRY(fixture.ExpectSame(*attachment, container, "a second ADD"));
  return Expect(!held || fixture.AddressHeld(*attachment).value_or(false),
                "the second ADD gave back the address that the first one's interface uses");
}

// The plugin begins, but its IPAM plugin does not exist.
Result<void> FailsWhole(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  const auto container = RH_TRY(Fixture::See(*attachment));
  const auto host = RH_TRY(Fixture::SeeHost());
  Request request;
  request.command = "ADD";
  request.patch = {{"ipam", {{"type", "no-such-ipam-plugin"}}}};
  RH_TRY(fixture.MustFail(*attachment, request, "although its IPAM plugin does not exist"));
  RH_TRY(fixture.ExpectSame(*attachment, container, "the failed ADD"));
  return fixture.ExpectHostSame(host, "the failed ADD");
}

Result<void> WorksAfterFailure(Fixture& fixture) {
  Attachment* attachment = RH_TRY(fixture.NewAttachment());
  Request wrong;
  wrong.command = "ADD";
  wrong.patch = {{"ipam", {{"type", "no-such-ipam-plugin"}}}};
  RH_TRY(fixture.MustFail(*attachment, wrong, "although its IPAM plugin does not exist"));
  RH_TRY(fixture.Del(*attachment));
  return fixture.Add(*attachment);
}

Result<void> Tolerates(Fixture& fixture, const Json& patch, const std::string& args) {
  Attachment* attachment = RH_TRY(fixture.NewAttachment());
  Request request;
  request.patch = patch;
  const std::string& own = fixture.target().args;
  if (!args.empty()) request.environment["CNI_ARGS"] = (own.empty() ? own : own + ";") + args;
  return fixture.Add(*attachment, request);
}

}  // namespace

std::vector<Check> AddChecks() {
  const Needs both{true, true, ""};
  const auto tolerates = [](Json patch, std::string args) {
    return
        [patch = std::move(patch), args = std::move(args)](Fixture& f) { return Tolerates(f, patch, args); };
  };
  return {
      {"add.output",
       "ADD prints one JSON object and nothing else",
       "5 ADD Success",
       Severity::kMust,
       {},
       PrintsOneObject},
      {"add.interface", "ADD makes the interface CNI_IFNAME in CNI_NETNS", "2 ADD", Severity::kMust,
       kInterface, MakesInterface},
      {"add.up", "The interface is up", "2 ADD", Severity::kExtra, kInterface, BringsUp},
      {"add.listed", "The result lists it, with CNI_NETNS as its sandbox", "5 ADD Success", Severity::kMust,
       kInterface, ListsInterface},
      {"add.mac", "The result has its MAC", "5 ADD Success", Severity::kMust, kInterface, TellsMac},
      {"add.mtu",
       "The result has its MTU",
       "5 ADD Success",
       Severity::kMust,
       {true, false, "1.1.0"},
       TellsMtu},
      {"add.addresses", "The result has its addresses, and no other", "5 ADD Success", Severity::kMust,
       kInterface, TellsAddresses},
      {"add.index", "The result's addresses refer to it", "5 ADD Success", Severity::kMust, kInterface,
       IndexesAddresses},
      {"add.routes", "The result's routes are in the container", "5 ADD Success", Severity::kMust, kInterface,
       MakesRoutes},
      {"add.host", "The result's host interfaces exist, with their MACs", "5 ADD Success", Severity::kMust,
       kInterface, TellsHostInterfaces},
      {"add.taken-name", "ADD on a taken name is refused, the container as it was", "2 ADD", Severity::kMust,
       kInterface, RefusesTakenName},
      {"add.taken-name.host", "... and nothing is left on the host", "2 ADD", Severity::kShould, kInterface,
       RefusedLeavesNoTrace},
      {"add.twice", "A second ADD for the same interface is refused", "2 ADD", Severity::kMust, kInterface,
       RefusesSecond},
      {"add.twice.harmless", "... and the first one's interface and address stay", "2 ADD", Severity::kExtra,
       kInterface, SecondHarmsNothing},
      {"add.ipam-missing", "ADD whose IPAM plugin fails is refused and leaves nothing", "4 Delegated plugin",
       Severity::kMust, both, FailsWhole},
      {"add.after-failure", "After that and a DEL, ADD works", "3 Lifecycle", Severity::kMust, both,
       WorksAfterFailure},
      {"add.args",
       "Unknown CNI_ARGS are ignored where IgnoreUnknown asks for it",
       "CONVENTIONS.md",
       Severity::kExtra,
       {},
       tolerates(nullptr, "IgnoreUnknown=true;K8S_POD_NAME=pod;K8S_POD_NAMESPACE=default")},
      {"add.args-field",
       "Unknown members of args are ignored",
       "CONVENTIONS.md",
       Severity::kShould,
       {},
       tolerates({{"args",
                   {{"cni", {{"labels", Json::array({{{"key", "app"}, {"value", "x"}}})}}},
                    {"vendor", {{"x", 1}}}}}},
                 "")},
      {"add.runtime-config",
       "Unknown capabilities are ignored",
       "3 Deriving runtimeConfig",
       Severity::kExtra,
       {},
       tolerates({{"runtimeConfig", {{"conformanceCapability", {{"x", Json::array({1, 2})}}}}}}, "")},
  };
}

std::vector<Check> ResultChecks() {
  std::vector<Check> checks;
  for (const auto& version : KnownVersions()) {
    checks.push_back({"result." + version,
                      "The result has the form of " + version,
                      "5 ADD Success",
                      Severity::kMust,
                      {},
                      [version](Fixture& fixture) -> Result<void> {
                        if (!fixture.target().Supports(version))
                          return fixture.NotApplicable(version + " is not supported");
                        Request request;
                        request.version = version;
                        const Attachment* attachment = RH_TRY(fixture.Attached(request));
                        RH_TRY(CheckShape(attachment->result, version, fixture.target().kind == Kind::kIpam));
                        return fixture.Del(*attachment, request);
                      }});
  }
  return checks;
}

}  // namespace railhead::conformance
