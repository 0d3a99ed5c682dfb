// CHECK: it succeeds after ADD, and notices what was removed since then.
#include "tests/system/conformance/check.h"

#include "netns/base/text.h"
#include "tests/system/conformance/result_shape.h"

namespace railhead::conformance {
namespace {

Result<void> IsContent(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  return fixture.Check(*attachment);
}

Result<void> CheckIsSilent(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  Request request;
  request.command = "CHECK";
  request.prev_result = attachment->result;
  const Outcome outcome = fixture.Call(*attachment, request);
  RH_TRY(Expect(outcome.Succeeded(), "CHECK failed: " + outcome.Describe()));
  return Expect(outcome.out.empty(), "CHECK printed something: " + outcome.Describe());
}

Result<void> ChangesNothing(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const auto container = RH_TRY(Fixture::See(*attachment));
  const auto host = RH_TRY(Fixture::SeeHost());
  RH_TRY(fixture.Check(*attachment));
  RH_TRY(fixture.ExpectSame(*attachment, container, "CHECK"));
  return fixture.ExpectHostSame(host, "CHECK");
}

Result<void> ExpectRefusal(Fixture& fixture, const Attachment& attachment, const std::string& why,
                           const Json& prev_result = nullptr) {
  Request request;
  request.command = "CHECK";
  request.prev_result = prev_result.is_null() ? attachment.result : prev_result;
  return fixture.MustFail(attachment, request, why);
}

// `break_it` breaks the container's interface; CHECK must notice.
Result<void> Notices(Fixture& fixture, const std::string& what,
                     const std::function<Result<void>(RouteApi&, const Link&, const Attachment&)>& break_it) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  RH_TRY(fixture.Check(*attachment));
  const auto api = RH_TRY(Fixture::RouteIn(*attachment));
  const auto link = RH_TRY(api->FindLink(attachment->ifname));
  if (!link) return Fail(ErrorCode::kNotFound, "ADD made no " + attachment->ifname);
  RH_TRY(break_it(*api, *link, *attachment));
  return ExpectRefusal(fixture, *attachment, "although " + what);
}

Result<void> NoticesDeletion(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  RH_TRY(fixture.Check(*attachment));
  // Under another name the interface is missing for CHECK, and DEL of a device can still find it.
  RH_TRY(Fixture::Rename(*attachment, attachment->ifname, "elsewhere"));
  auto refused = ExpectRefusal(fixture, *attachment, "although the interface is gone");
  RH_TRY(Fixture::Rename(*attachment, "elsewhere", attachment->ifname));
  return refused;
}

Result<void> NoticesAddress(Fixture& fixture) {
  return Notices(fixture, "the interface has lost its addresses",
                 [&](RouteApi& api, const Link& link, const Attachment& attachment) -> Result<void> {
                   const auto ips = IpsOf(attachment.result);
                   if (ips.empty()) return fixture.NotApplicable("the plugin gives no address");
                   for (const auto& ip : ips) (void)RH_TRY(api.DeleteAddress(link.index, ip.address));
                   return {};
                 });
}

Result<void> NoticesDown(Fixture& fixture) {
  return Notices(fixture, "the interface is down", [](RouteApi& api, const Link& link, const Attachment&) {
    LinkChange down;
    down.up = false;
    return api.ChangeLink(link.index, down);
  });
}

// Restores the MAC at the end, since a plugin may identify its device by it.
Result<void> NoticesMac(Fixture& fixture) {
  LinkChange before;
  const Attachment* changed = nullptr;
  auto noticed = Notices(fixture, "the interface has another MAC than the result",
                         [&](RouteApi& api, const Link& link, const Attachment& attachment) -> Result<void> {
                           before.mac = link.mac;
                           LinkChange change;
                           change.mac = link.mac;
                           change.mac->bytes[0] = 0x02;
                           change.mac->bytes[5] ^= 0x55U;
                           if (!api.ChangeLink(link.index, change)) {
                             return fixture.NotApplicable("the device takes no other MAC");
                           }
                           changed = &attachment;
                           return {};
                         });
  if (changed == nullptr) return noticed;
  const auto api = RH_TRY(Fixture::RouteIn(*changed));
  const auto link = RH_TRY(api->FindLink(changed->ifname));
  if (link) RH_TRY(api->ChangeLink(link->index, before));
  return noticed;
}

Result<void> NoticesRoute(Fixture& fixture) {
  return Notices(fixture, "the result's routes are gone",
                 [&](RouteApi& api, const Link&, const Attachment& attachment) -> Result<void> {
                   int removed = 0;
                   for (const auto& stated : Objects(attachment.result, "routes")) {
                     const auto wanted = IpPrefix::Parse(Text(stated, "dst"));
                     if (!wanted) continue;
                     for (const auto& route : RH_TRY(api.ListRoutes(wanted->address.Family(), 0))) {
                       if (route.destination != wanted->Network()) continue;
                       removed += RH_TRY(api.DeleteRoute(route)) ? 1 : 0;
                     }
                   }
                   if (removed == 0) return fixture.NotApplicable("the result has no routes");
                   return {};
                 });
}

Result<void> NoticesReservation(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  RH_TRY(fixture.Check(*attachment));
  if (!fixture.AddressHeld(*attachment).value_or(false)) {
    return fixture.NotApplicable("the IPAM plugin's CHECK does not confirm its address");
  }
  const Outcome released = fixture.CallIpam(*attachment, "DEL");
  RH_TRY(Expect(released.Succeeded(), "DEL of the IPAM plugin failed: " + released.Describe()));
  if (fixture.AddressHeld(*attachment).value_or(true)) {
    return fixture.NotApplicable("the IPAM plugin's CHECK does not notice its own DEL");
  }
  return ExpectRefusal(fixture, *attachment, "although the IPAM plugin holds no address for it any more");
}

// CHECK must go by the runtime's prevResult, whatever the plugin remembers itself.
Result<void> ReadsPrevResult(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  if (IpsOf(attachment->result).empty()) return fixture.NotApplicable("the plugin gives no address");
  Json other = attachment->result;
  for (auto& ip : other["ips"]) {
    const auto address = IpPrefix::Parse(Text(ip, "address"));
    if (address) ip["address"] = address->address.IsV4() ? "192.0.2.99/24" : "2001:db8::99/64";
  }
  return ExpectRefusal(fixture, *attachment, "although prevResult has an address that the container has not",
                       other);
}

Result<void> RefusesUnknown(Fixture& fixture) {
  const Attachment* known = RH_TRY(fixture.Attached());
  const Attachment* unknown = RH_TRY(fixture.NewAttachment());
  return ExpectRefusal(fixture, *unknown, "for a container that was never ADDed", known->result);
}

}  // namespace

std::vector<Check> CheckChecks() {
  const Needs interface { true, false, "0.4.0" };
  const Needs with_ipam{true, true, "0.4.0"};
  const Needs any{false, false, "0.4.0"};
  return {
      {"check.after-add", "CHECK succeeds immediately after ADD", "2 CHECK", Severity::kMust, any, IsContent},
      {"check.silent", "CHECK prints nothing when it succeeds", "2 CHECK (0.4.0)", Severity::kMust, any,
       CheckIsSilent},
      {"check.passive", "CHECK changes nothing", "2 CHECK", Severity::kMust, interface, ChangesNothing},
      {"check.interface-gone", "CHECK notices that the interface is gone", "2 CHECK", Severity::kShould,
       interface, NoticesDeletion},
      {"check.address-gone", "CHECK notices that the addresses are gone", "2 CHECK", Severity::kShould,
       interface, NoticesAddress},
      {"check.link-down", "CHECK notices that the interface is down", "2 CHECK", Severity::kShould, interface,
       NoticesDown},
      {"check.mac", "CHECK notices another MAC", "2 CHECK", Severity::kShould, interface, NoticesMac},
      {"check.route-gone", "CHECK notices that the routes are gone", "2 CHECK", Severity::kShould, interface,
       NoticesRoute},
      {"check.reservation-gone", "CHECK notices that the address is not reserved", "2 CHECK",
       Severity::kShould, with_ipam, NoticesReservation},
      {"check.prev-result", "CHECK compares with prevResult", "2 CHECK", Severity::kMust, interface,
       ReadsPrevResult},
      {"check.unknown", "CHECK refuses a container without attachment", "2 CHECK", Severity::kShould, any,
       RefusesUnknown},
  };
}

}  // namespace railhead::conformance
