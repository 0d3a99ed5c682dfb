// A plugin after others in a chain: it keeps their entries in the result and their interfaces in the
// container.
#include <algorithm>

#include "tests/support/netns/stand_in.h"
#include "tests/system/conformance/check.h"
#include "tests/system/conformance/result_shape.h"

namespace railhead::conformance {
namespace {

// The first plugin's: an interface in the container and its peer on the host, an
// address, a route, DNS.
Result<Json> AddFirst(const Fixture& fixture, const Attachment& attachment) {
  const NetNs ns = RH_TRY(attachment.sandbox->Open());
  const NetNs host = RH_TRY(NetNs::Current());
  const std::string peer = "first" + std::to_string(attachment.slot);
  testing::AddVeth(host, peer, ns, "first0");
  const auto api = RH_TRY(Fixture::RouteIn(attachment));
  const Link link = testing::GetLink(*api, "first0");
  RH_TRY(api->AddAddress(link.index, *IpPrefix::Parse("198.51.100.5/24")));
  testing::BringUp(*api, link.index);
  const std::string version = fixture.target().version;
  Json ip = {{"address", "198.51.100.5/24"}, {"gateway", "198.51.100.1"}, {"interface", 1}};
  if (!AtLeast(version, "1.0.0")) ip["version"] = "4";
  return Json{
      {"cniVersion", version},
      {"interfaces",
       Json::array({{{"name", peer}, {"mac", "02:00:00:00:00:01"}},
                    {{"name", "first0"}, {"mac", link.mac.ToString()}, {"sandbox", attachment.netns}}})},
      {"ips", Json::array({ip})},
      {"routes", Json::array({{{"dst", "203.0.113.0/24"}, {"gw", "198.51.100.1"}}})},
      {"dns", {{"nameservers", Json::array({"198.51.100.53"})}, {"domain", "conformance.test"}}}};
}

struct Chained {
  Attachment* attachment;
  Json first;
};

Result<Chained> AddChained(Fixture& fixture) {
  Attachment* attachment = RH_TRY(fixture.NewAttachment());
  Request request;
  request.prev_result = RH_TRY(AddFirst(fixture, *attachment));
  RH_TRY(fixture.Add(*attachment, request));
  return Chained{attachment, request.prev_result};
}

Result<void> KeepsInterfaces(Fixture& fixture) {
  const Chained chained = RH_TRY(AddChained(fixture));
  for (const auto& interface : Objects(chained.first, "interfaces")) {
    RH_TRY(
        Expect(FindInterface(chained.attachment->result, Text(interface, "name"), Text(interface, "sandbox"))
                   .has_value(),
               "the result has lost " + interface.dump() + ": " + chained.attachment->result.dump()));
  }
  return {};
}

Result<void> AddsItsOwn(Fixture& fixture) {
  const Chained chained = RH_TRY(AddChained(fixture));
  const Attachment& attachment = *chained.attachment;
  return Expect(
      FindInterface(attachment.result, attachment.ifname, attachment.netns).has_value(),
      "the result does not list " + attachment.ifname + " of the container: " + attachment.result.dump());
}

// Every address refers to its interface: the first plugin's still to the first interface.
Result<void> KeepsIndexes(Fixture& fixture) {
  const Chained chained = RH_TRY(AddChained(fixture));
  const Json& result = chained.attachment->result;
  const auto first = FindInterface(result, "first0", chained.attachment->netns);
  const auto own = FindInterface(result, chained.attachment->ifname, chained.attachment->netns);
  bool kept = false;
  for (const auto& ip : IpsOf(result)) {
    const bool firsts = ip.address.ToString() == "198.51.100.5/24";
    kept = kept || firsts;
    const auto& wanted = firsts ? first : own;
    RH_TRY(Expect(wanted && ip.interface == static_cast<int>(*wanted),
                  ip.address.ToString() + " refers to the wrong interface: " + result.dump()));
  }
  return Expect(kept, "the result has lost 198.51.100.5/24: " + result.dump());
}

Result<void> KeepsRest(Fixture& fixture) {
  const Chained chained = RH_TRY(AddChained(fixture));
  const Json& result = chained.attachment->result;
  const auto routes = Objects(result, "routes");
  RH_TRY(Expect(std::any_of(routes.begin(), routes.end(),
                            [](const Json& route) { return Text(route, "dst") == "203.0.113.0/24"; }),
                "the result has lost the route to 203.0.113.0/24: " + result.dump()));
  const auto dns = result.find("dns");
  return Expect(dns != result.end() && Text(*dns, "domain") == "conformance.test",
                "the result has lost the DNS settings: " + result.dump());
}

Result<void> HasForm(Fixture& fixture) {
  const Chained chained = RH_TRY(AddChained(fixture));
  return CheckShape(chained.attachment->result, fixture.target().version, false);
}

Result<void> ChecksChained(Fixture& fixture) {
  const Chained chained = RH_TRY(AddChained(fixture));
  return fixture.Check(*chained.attachment);
}

Result<void> DeletesOnlyItsOwn(Fixture& fixture) {
  Attachment* attachment = RH_TRY(fixture.NewAttachment());
  Request request;
  request.prev_result = RH_TRY(AddFirst(fixture, *attachment));
  const auto before = RH_TRY(Fixture::See(*attachment));
  RH_TRY(fixture.Add(*attachment, request));
  RH_TRY(fixture.Del(*attachment));
  return fixture.ExpectSame(*attachment, before, "ADD and DEL behind another plugin");
}

}  // namespace

std::vector<Check> ChainChecks() {
  const Needs chain{true, false, "0.3.0"};
  const Needs chain_check{true, false, "0.4.0"};
  return {
      {"chain.interfaces", "The interfaces of prevResult are in the result", "2 ADD", Severity::kMust, chain,
       KeepsInterfaces},
      {"chain.own", "So is the plugin's own", "5 ADD Success", Severity::kMust, chain, AddsItsOwn},
      {"chain.indexes", "The addresses of both refer to the right interfaces", "5 ADD Success",
       Severity::kMust, chain, KeepsIndexes},
      {"chain.rest", "Routes and DNS of prevResult are in the result", "2 ADD", Severity::kMust, chain,
       KeepsRest},
      {"chain.form", "The merged result has the form of its version", "5 ADD Success", Severity::kMust, chain,
       HasForm},
      {"chain.check", "CHECK succeeds with the merged result", "2 CHECK", Severity::kMust, chain_check,
       ChecksChained},
      {"chain.del", "DEL leaves what the other plugin made", "2 DEL", Severity::kMust, chain,
       DeletesOnlyItsOwn},
  };
}

}  // namespace railhead::conformance
