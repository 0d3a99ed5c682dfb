// GC and STATUS, which are new in 1.1.0.
#include "tests/system/conformance/check.h"

namespace railhead::conformance {
namespace {

constexpr const char* kValid = "cni.dev/valid-attachments";

Request GcRequest(const std::vector<const Attachment*>& valid) {
  Request request;
  request.command = "GC";
  Json list = Json::array();
  for (const auto* attachment : valid) {
    list.push_back({{"containerID", attachment->container}, {"ifname", attachment->ifname}});
  }
  request.patch = {{kValid, list}};
  return request;
}

Result<void> CollectGarbage(Fixture& fixture, const Request& request) {
  const Outcome outcome = fixture.Call({}, request);
  return Expect(outcome.Succeeded(), request.command + " failed: " + outcome.Describe());
}

// Runs GC. The attachment `spared` must not change, neither its namespace nor CHECK.
Result<void> Gc(Fixture& fixture, const std::vector<const Attachment*>& valid, const Attachment& spared,
                Request checked = {}) {
  const auto before = RH_TRY(Fixture::See(spared));
  RH_TRY(CollectGarbage(fixture, GcRequest(valid)));
  RH_TRY(fixture.ExpectSame(spared, before, "GC"));
  return fixture.Check(spared, std::move(checked));
}

Result<void> KeepsValid(Fixture& fixture) {
  const Attachment* a = RH_TRY(fixture.Attached());
  const Attachment* b = RH_TRY(fixture.Attached());
  RH_TRY(Gc(fixture, {a, b}, *a));
  return fixture.Check(*b);
}

Result<void> GcIsSilent(Fixture& fixture) {
  const Attachment* a = RH_TRY(fixture.Attached());
  const Outcome outcome = fixture.Call({}, GcRequest({a}));
  RH_TRY(Expect(outcome.Succeeded(), "GC failed: " + outcome.Describe()));
  return Expect(outcome.out.empty(), "GC printed something: " + outcome.Describe());
}

// The remains after a runtime lost a DEL: everything except the namespace.
Result<void> GcReleasesAddress(Fixture& fixture) {
  const Attachment* kept = RH_TRY(fixture.Attached());
  const Attachment* lost = RH_TRY(fixture.Attached());
  if (!fixture.AddressHeld(*lost).value_or(false)) {
    return fixture.NotApplicable("the IPAM plugin's CHECK does not confirm its address");
  }
  lost->sandbox->Destroy();
  RH_TRY(Gc(fixture, {kept}, *kept));
  return Expect(!fixture.AddressHeld(*lost).value_or(false),
                "the address of a lost attachment is still held");
}

Result<void> GcLeavesHostClean(Fixture& fixture) {
  const Attachment* kept = RH_TRY(fixture.Attached());
  Attachment* lost = RH_TRY(fixture.NewAttachment());
  const auto before = RH_TRY(Fixture::SeeHost());
  RH_TRY(fixture.Add(*lost));
  lost->sandbox->Destroy();
  RH_TRY(Gc(fixture, {kept}, *kept));
  return fixture.ExpectNothingNew(before, "after GC");
}

Result<void> AllowsAddAgain(Fixture& fixture) {
  const Attachment* lost = RH_TRY(fixture.Attached());
  lost->sandbox->Destroy();
  RH_TRY(CollectGarbage(fixture, GcRequest({})));
  RH_TRY(fixture.Del(*lost));
  return {};
}

Result<void> SparesOtherNetworks(Fixture& fixture) {
  Request elsewhere;
  elsewhere.patch = {{"name", "conformance-other-network"}};
  const Attachment* other = RH_TRY(fixture.Attached(elsewhere));
  auto spared = Gc(fixture, {}, *other, elsewhere);
  RH_TRY(fixture.Del(*other, elsewhere));
  return spared;
}

Result<void> RefusesWithoutList(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  Request request;
  request.command = "GC";
  RH_TRY(fixture.MustFail({}, request, "without cni.dev/valid-attachments"));
  return fixture.Check(*attachment);
}

Result<void> RefusesWrongList(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  Request request;
  request.command = "GC";
  request.patch = {{kValid, Json::array({"not-an-object", 7})}};
  RH_TRY(fixture.MustFail({}, request, "although its list has no objects"));
  return fixture.Check(*attachment);
}

Result<void> RefusedInOldVersion(Fixture& fixture, const std::string& command) {
  Request request = GcRequest({});
  request.command = command;
  request.version = "1.0.0";
  return fixture.MustFail({}, request, "although 1.0.0 does not have it");
}

Result<void> IsReady(Fixture& fixture) {
  Request request;
  request.command = "STATUS";
  return CollectGarbage(fixture, request);
}

Result<void> AsksDelegate(Fixture& fixture) {
  Request request;
  request.command = "STATUS";
  request.patch = {{"ipam", {{"type", "no-such-ipam-plugin"}}}};
  return fixture.MustFail({}, request, "although its IPAM plugin does not exist");
}

Result<void> StatusHasCode(Fixture& fixture) {
  Request request;
  request.command = "STATUS";
  request.patch = {{"ipam", {{"type", "no-such-ipam-plugin"}}}};
  const Outcome outcome = fixture.Call({}, request);
  const auto error = ParseJson(outcome.out);
  const long code = error ? Number(*error, "code").value_or(0) : 0;
  return Expect(code == 50 || code == 51, "the code is neither 50 nor 51: " + outcome.Describe());
}

}  // namespace

std::vector<Check> GcChecks() {
  const Needs gc{false, false, "1.1.0"};
  const Needs interface { true, false, "1.1.0" };
  const Needs ipam{false, true, "1.1.0"};
  return {
      {"gc.keeps", "GC leaves the listed attachments alone", "2 GC", Severity::kMust, gc, KeepsValid},
      {"gc.silent", "GC prints nothing when it succeeds", "2 GC", Severity::kMust, gc, GcIsSilent},
      {"gc.address", "GC gives back addresses of attachments that are not listed", "2 GC", Severity::kShould,
       ipam, GcReleasesAddress},
      {"gc.host", "GC leaves nothing of them on the host", "2 GC", Severity::kShould, interface,
       GcLeavesHostClean},
      {"gc.del", "DEL of what GC has collected succeeds", "2 DEL", Severity::kMust, gc, AllowsAddAgain},
      {"gc.other-network", "GC leaves attachments of other networks alone", "2 GC", Severity::kMust, gc,
       SparesOtherNetworks},
      {"gc.no-list", "GC without a list is refused and takes nothing", "2 GC", Severity::kExtra, gc,
       RefusesWithoutList},
      {"gc.wrong-list", "GC with a list of something else is refused and takes nothing", "2 GC",
       Severity::kExtra, gc, RefusesWrongList},
      {"gc.old-version", "GC is refused in 1.0.0", "2 GC", Severity::kShould, gc,
       [](Fixture& fixture) { return RefusedInOldVersion(fixture, "GC"); }},
  };
}

std::vector<Check> StatusChecks() {
  const Needs status{false, false, "1.1.0"};
  const Needs both{true, true, "1.1.0"};
  return {
      {"status.ready", "STATUS succeeds when ADD would", "2 STATUS", Severity::kMust, status, IsReady},
      {"status.delegate", "STATUS fails when the IPAM plugin is not available", "2 STATUS", Severity::kMust,
       both, AsksDelegate},
      {"status.code", "... with code 50 or 51", "2 STATUS", Severity::kShould, both, StatusHasCode},
      {"status.old-version", "STATUS is refused in 1.0.0", "2 STATUS", Severity::kShould, status,
       [](Fixture& fixture) { return RefusedInOldVersion(fixture, "STATUS"); }},
  };
}

}  // namespace railhead::conformance
