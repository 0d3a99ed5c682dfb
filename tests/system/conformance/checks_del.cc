// DEL: it removes everything, and it succeeds whatever is missing.
#include "tests/system/conformance/check.h"
#include "tests/system/conformance/result_shape.h"

namespace railhead::conformance {
namespace {

Request DelRequest() {
  Request request;
  request.command = "DEL";
  return request;
}

Result<void> RemovesInterface(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  RH_TRY(fixture.Del(*attachment));
  const auto link = RH_TRY(Fixture::LinkOf(*attachment));
  return Expect(!link, attachment->ifname + " is still in the container");
}

Result<void> DelIsSilent(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  Request request = DelRequest();
  if (AtLeast(fixture.target().version, "0.4.0")) request.prev_result = attachment->result;
  const Outcome outcome = fixture.Call(*attachment, request);
  RH_TRY(Expect(outcome.Succeeded(), "DEL failed: " + outcome.Describe()));
  return Expect(outcome.out.empty(), "DEL printed something: " + outcome.Describe());
}

Result<void> LeavesContainerClean(Fixture& fixture) {
  Attachment* attachment = RH_TRY(fixture.NewAttachment());
  const auto before = RH_TRY(Fixture::See(*attachment));
  RH_TRY(fixture.Add(*attachment));
  RH_TRY(fixture.Del(*attachment));
  return fixture.ExpectSame(*attachment, before, "ADD and DEL");
}

Result<void> LeavesHostClean(Fixture& fixture) {
  Attachment* attachment = RH_TRY(fixture.NewAttachment());
  const auto before = RH_TRY(Fixture::SeeHost());
  RH_TRY(fixture.Add(*attachment));
  RH_TRY(fixture.Del(*attachment));
  return fixture.ExpectHostSame(before, "ADD and DEL");
}

// The IPAM plugin shows whether the main plugin called it for the release.
Result<void> ExpectReleased(Fixture& fixture, const Attachment& attachment) {
  return Expect(!fixture.AddressHeld(attachment).value_or(false), "the address is still held");
}

Result<void> RequireHeld(Fixture& fixture, const Attachment& attachment) {
  if (fixture.AddressHeld(attachment).value_or(false)) return {};
  return fixture.NotApplicable("the IPAM plugin's CHECK does not confirm its address");
}

Result<void> ReleasesAddress(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  RH_TRY(RequireHeld(fixture, *attachment));
  RH_TRY(fixture.Del(*attachment));
  return ExpectReleased(fixture, *attachment);
}

Result<void> Repeats(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  for (int i = 0; i < 3; ++i) RH_TRY(fixture.Del(*attachment));
  return {};
}

Result<void> TakesUnknown(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  return fixture.Del(*attachment);
}

Result<void> WorksWithoutPrevResult(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const Outcome outcome = fixture.Call(*attachment, DelRequest());
  RH_TRY(Expect(outcome.Succeeded(), "DEL without prevResult failed: " + outcome.Describe()));
  if (fixture.target().kind == Kind::kIpam) return {};
  return Expect(!RH_TRY(Fixture::LinkOf(*attachment)), attachment->ifname + " is still in the container");
}

Result<void> WorksWithEmptyPrevResult(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  Request request = DelRequest();
  request.prev_result = {{"cniVersion", fixture.target().version}, {"dns", Json::object()}};
  const Outcome outcome = fixture.Call(*attachment, request);
  return Expect(outcome.Succeeded(), "DEL with an empty prevResult failed: " + outcome.Describe());
}

Result<void> DelWithoutNetns(Fixture& fixture, const Attachment& attachment) {
  Request request = DelRequest();
  request.environment["CNI_NETNS"] = std::nullopt;
  RH_TRY(fixture.Del(attachment, request));
  request.environment["CNI_NETNS"] = "";
  return fixture.Del(attachment, request);
}

Result<void> WorksWithoutNetns(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  return DelWithoutNetns(fixture, *attachment);
}

Result<void> ReleasesWithoutNetns(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  RH_TRY(RequireHeld(fixture, *attachment));
  RH_TRY(DelWithoutNetns(fixture, *attachment));
  return ExpectReleased(fixture, *attachment);
}

Result<void> WorksWhenDead(Fixture& fixture, bool keep_file) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  attachment->sandbox->Destroy(keep_file);
  RH_TRY(fixture.Del(*attachment));
  return fixture.Del(*attachment);
}

Result<void> ReleasesWhenDead(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  RH_TRY(RequireHeld(fixture, *attachment));
  attachment->sandbox->Destroy();
  RH_TRY(fixture.Del(*attachment));
  return ExpectReleased(fixture, *attachment);
}

Result<void> LeavesHostCleanWhenDead(Fixture& fixture) {
  Attachment* attachment = RH_TRY(fixture.NewAttachment());
  const auto before = RH_TRY(Fixture::SeeHost());
  RH_TRY(fixture.Add(*attachment));
  attachment->sandbox->Destroy();
  RH_TRY(fixture.Del(*attachment));
  return fixture.ExpectNothingNew(before, "after ADD, the end of the namespace, and DEL");
}

Result<void> WorksWithoutInterface(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  RH_TRY(Fixture::TakeAway(*attachment));
  return fixture.Del(*attachment);
}

Result<void> WorksAfterFailedAdd(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  Request request;
  request.command = "ADD";
  request.patch = {{"ipam", {{"type", "no-such-ipam-plugin"}}}};
  RH_TRY(fixture.MustFail(*attachment, request, "although its IPAM plugin does not exist"));
  return fixture.Del(*attachment);
}

Result<void> SparesForeignInterface(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  RH_TRY(Fixture::OccupyName(*attachment));
  const auto before = RH_TRY(Fixture::See(*attachment));
  RH_TRY(fixture.Del(*attachment));
  return fixture.ExpectSame(*attachment, before, "DEL of what was never ADDed");
}

Result<void> CanBeAddedAgain(Fixture& fixture) {
  Attachment* attachment = RH_TRY(fixture.Attached());
  RH_TRY(fixture.Del(*attachment));
  RH_TRY(fixture.Add(*attachment));
  return AtLeast(fixture.target().version, "0.4.0") ? fixture.Check(*attachment) : Result<void>();
}

}  // namespace

std::vector<Check> DelChecks() {
  const Needs ipam{false, true, "0.4.0"};
  const Needs both{true, true, ""};
  return {
      {"del.interface", "DEL removes the interface", "2 DEL", Severity::kMust, kInterface, RemovesInterface},
      {"del.silent", "DEL prints nothing", "2 DEL", Severity::kExtra, {}, DelIsSilent},
      {"del.container", "The container is as before ADD", "2 DEL", Severity::kMust, kInterface,
       LeavesContainerClean},
      {"del.host", "The host is as before ADD", "2 DEL", Severity::kMust, kInterface, LeavesHostClean},
      {"del.address", "The address is given back", "2 DEL", Severity::kMust, ipam, ReleasesAddress},
      {"del.again", "DEL succeeds any number of times", "2 DEL", Severity::kMust, {}, Repeats},
      {"del.unknown",
       "DEL succeeds for a container that was never ADDed",
       "2 DEL",
       Severity::kMust,
       {},
       TakesUnknown},
      {"del.no-prev-result",
       "DEL works without prevResult",
       "2 DEL",
       Severity::kMust,
       {},
       WorksWithoutPrevResult},
      {"del.empty-prev-result",
       "DEL works with an empty prevResult",
       "2 DEL",
       Severity::kShould,
       {false, false, "0.4.0"},
       WorksWithEmptyPrevResult},
      {"del.no-netns", "DEL succeeds without CNI_NETNS", "2 DEL", Severity::kMust, {}, WorksWithoutNetns},
      {"del.no-netns.address", "... and gives the address back", "2 DEL", Severity::kShould, ipam,
       ReleasesWithoutNetns},
      {"del.dead-netns",
       "DEL succeeds when the namespace and its path are gone",
       "2 DEL",
       Severity::kMust,
       {},
       [](Fixture& fixture) { return WorksWhenDead(fixture, false); }},
      {"del.stale-path",
       "DEL succeeds when an empty file is left of the namespace",
       "2 DEL",
       Severity::kShould,
       {},
       [](Fixture& fixture) { return WorksWhenDead(fixture, true); }},
      {"del.dead-netns.address", "DEL without a namespace gives the address back", "2 DEL", Severity::kShould,
       ipam, ReleasesWhenDead},
      {"del.dead-netns.host", "... and leaves nothing on the host", "2 DEL", Severity::kShould, kInterface,
       LeavesHostCleanWhenDead},
      {"del.no-interface", "DEL succeeds when the interface is gone", "2 DEL", Severity::kMust, kInterface,
       WorksWithoutInterface},
      {"del.failed-add", "DEL succeeds after an ADD that failed", "3 Lifecycle", Severity::kMust, both,
       WorksAfterFailedAdd},
      {"del.foreign", "DEL of what was never ADDed leaves an interface of the same name alone", "2 DEL",
       Severity::kExtra, kInterface, SparesForeignInterface},
      {"del.add-again",
       "After DEL the same container can be ADDed again",
       "3 Lifecycle",
       Severity::kMust,
       {},
       CanBeAddedAgain},
  };
}

}  // namespace railhead::conformance
