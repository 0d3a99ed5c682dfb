#include "tests/system/conformance/fixture.h"

#include <linux/rtnetlink.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "netns/nl/message.h"
#include "netns/nl/netlink_route.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::conformance {
namespace {

using Lines = std::vector<std::string>;

constexpr const char* kFirstName = "eth0";
constexpr std::chrono::milliseconds kFixturePause{5};

Result<void> ExpectLines(std::chrono::seconds settle, const std::function<Result<Lines>()>& see,
                         const Lines& before, const std::string& what) {
  for (const auto limit = std::chrono::steady_clock::now() + settle;;) {
    const std::string difference = Difference(before, RH_TRY(see()));
    if (difference.empty()) return {};
    if (std::chrono::steady_clock::now() >= limit) return Fail(ErrorCode::kConflict, what + difference);
    std::this_thread::sleep_for(kFixturePause);
  }
}

// Never the same twice, so that leftovers of one check cannot disturb the next.
std::string NewContainerName() {
  static std::atomic<int> number{0};
  return "conformance-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
}

}  // namespace

Result<void> Expect(bool condition, const std::string& why) {
  if (!condition) return Fail(ErrorCode::kConflict, why);
  return {};
}

Fixture::Fixture(const Target& target) : target_(target), host_before_(SeeHost().value_or(Lines{})) {}

Fixture::~Fixture() {
  for (auto attachment = attachments_.rbegin(); attachment != attachments_.rend(); ++attachment) {
    (void)Del(*attachment);
    attachment->sandbox.reset();
    if (!target_.cleanup.empty()) (void)RunShell(target_.cleanup, ShellEnvironment(*attachment));
  }
  // Waits, so that nothing disappears with these namespaces during the next check.
  if (!attachments_.empty()) (void)ExpectHostSame(host_before_, "");
}

tl::unexpected<Error> Fixture::NotApplicable(const std::string& why) {
  skipped_ = true;
  return Fail(ErrorCode::kUnsupported, why);
}

std::map<std::string, std::string> Fixture::ShellEnvironment(const Attachment& attachment) const {
  auto environment = target_.environment;
  environment["CONFORMANCE_SLOT"] = std::to_string(attachment.slot);
  environment["CNI_CONTAINERID"] = attachment.container;
  environment["CNI_NETNS"] = attachment.netns;
  environment["CNI_IFNAME"] = attachment.ifname;
  return environment;
}

Result<Attachment*> Fixture::Register(Attachment attachment) {
  attachment.slot = static_cast<int>(attachments_.size());
  attachment.netns = attachment.sandbox->path();
  if (!target_.setup.empty()) {
    const std::string printed =
        RH_TRY_WRAP(RunShell(target_.setup, ShellEnvironment(attachment)), "the setup command");
    if (!printed.empty()) {
      const auto patch = ParseJson(printed);
      if (!patch || !patch->is_object()) {
        return Fail(ErrorCode::kInvalid, "the setup command printed no JSON object: " + printed);
      }
      attachment.patch = *patch;
    }
  }
  attachments_.push_back(std::move(attachment));
  return &attachments_.back();
}

Result<Attachment*> Fixture::NewAttachment() {
  Attachment attachment;
  attachment.container = NewContainerName();
  attachment.ifname = kFirstName;
  attachment.sandbox = std::make_shared<Sandbox>(RH_TRY(Sandbox::Make(attachment.container)));
  return Register(std::move(attachment));
}

Result<Attachment*> Fixture::NewAttachmentIn(const Attachment& other, const std::string& ifname) {
  Attachment attachment;
  attachment.container = other.container;
  attachment.ifname = ifname;
  attachment.sandbox = other.sandbox;
  return Register(std::move(attachment));
}

Result<Attachment*> Fixture::Attached(Request request) {
  Attachment* attachment = RH_TRY(NewAttachment());
  RH_TRY(Add(*attachment, std::move(request)));
  return attachment;
}

std::string Fixture::Configuration(const Attachment& attachment, const Request& request) const {
  Json config = target_.config;
  config.erase("capabilities");
  config["cniVersion"] = request.version.empty() ? target_.version : request.version;
  const bool attachments_own = request.command != "GC" && request.command != "STATUS";
  if (attachments_own && target_.runtime.is_object()) config["runtimeConfig"] = target_.runtime;
  if (attachments_own && attachment.patch.is_object()) config.merge_patch(attachment.patch);
  if (request.patch.is_object()) config.merge_patch(request.patch);
  if (!request.prev_result.is_null()) config["prevResult"] = request.prev_result;
  return config.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Outcome Fixture::Run(const std::string& program, const Attachment& attachment, const Request& request) const {
  Execution execution;
  execution.arguments = {program};
  execution.environment = target_.environment;
  auto& environment = execution.environment;
  environment["CNI_COMMAND"] = request.command;
  environment["CNI_PATH"] = target_.plugin_path;
  if (request.command != "GC" && request.command != "STATUS" && request.command != "VERSION") {
    environment["CNI_CONTAINERID"] = attachment.container;
    environment["CNI_NETNS"] = attachment.netns;
    environment["CNI_IFNAME"] = attachment.ifname;
    if (!target_.args.empty()) environment["CNI_ARGS"] = target_.args;
  }
  for (const auto& [name, value] : request.environment) {
    if (value) {
      environment[name] = *value;
    } else {
      environment.erase(name);
    }
  }
  execution.input = request.input ? *request.input : Configuration(attachment, request);
  execution.feeding = request.feeding;
  return Execute(execution);
}

Outcome Fixture::Call(const Attachment& attachment, const Request& request) const {
  return Run(target_.program, attachment, request);
}

Outcome Fixture::CallIpam(const Attachment& attachment, const std::string& command) const {
  Request request;
  request.command = command;
  request.version = target_.ipam_version;
  if (command == "CHECK" && attachment.result.is_object()) {
    request.prev_result = attachment.result;
    request.prev_result["cniVersion"] = target_.ipam_version;
  }
  return Run(target_.ipam_program, attachment, request);
}

Result<void> Fixture::Add(Attachment& attachment, Request request) {
  request.command = "ADD";
  const Outcome outcome = Call(attachment, request);
  if (!outcome.Succeeded()) return Fail(ErrorCode::kIo, "ADD failed: " + outcome.Describe());
  const auto result = ParseJson(outcome.out);
  if (!result || !result->is_object()) {
    return Fail(ErrorCode::kMalformed, "ADD succeeded but printed no JSON object: " + outcome.Describe());
  }
  attachment.result = *result;
  return {};
}

Result<void> Fixture::Del(const Attachment& attachment, Request request) const {
  request.command = "DEL";
  const std::string& version = request.version.empty() ? target_.version : request.version;
  // Before 0.4.0 a runtime does not pass the result to DEL.
  if (request.prev_result.is_null() && AtLeast(version, "0.4.0")) request.prev_result = attachment.result;
  const Outcome outcome = Call(attachment, request);
  if (!outcome.Succeeded()) return Fail(ErrorCode::kIo, "DEL failed: " + outcome.Describe());
  return {};
}

Result<void> Fixture::Check(const Attachment& attachment, Request request) const {
  request.command = "CHECK";
  if (request.prev_result.is_null()) request.prev_result = attachment.result;
  const Outcome outcome = Call(attachment, request);
  if (!outcome.Succeeded()) return Fail(ErrorCode::kIo, "CHECK failed: " + outcome.Describe());
  return {};
}

Result<void> Fixture::MustFail(const Attachment& attachment, const Request& request,
                               const std::string& why) const {
  const Outcome outcome = Call(attachment, request);
  RH_TRY(Expect(outcome.status != 0, request.command + " succeeded " + why));
  RH_TRY(Expect(outcome.status > 0 && !outcome.timed_out,
                request.command + " " + why + " did not end by itself: " + outcome.Describe()));
  return {};
}

Result<std::vector<std::string>> Fixture::See(const Attachment& attachment) {
  return Snapshot(RH_TRY(attachment.sandbox->Open()));
}

Result<std::vector<std::string>> Fixture::SeeHost() {
  return Snapshot(RH_TRY(NetNs::Current()));
}

Result<void> Fixture::ExpectSame(const Attachment& attachment, const Lines& before,
                                 const std::string& when) const {
  return ExpectLines(
      target_.settle, [&] { return See(attachment); }, before,
      "the container is not as before " + when + ": ");
}

Result<void> Fixture::ExpectHostSame(const Lines& before, const std::string& when) const {
  return ExpectLines(target_.settle, SeeHost, before, "the host is not as before " + when + ": ");
}

Result<void> Fixture::ExpectNothingNew(const Lines& before, const std::string& when) const {
  const auto without_losses = [&]() -> Result<Lines> {
    Lines now = RH_TRY(SeeHost());
    now.insert(now.end(), before.begin(), before.end());
    return now;
  };
  return ExpectLines(target_.settle, without_losses, before, "something is left on the host " + when + ": ");
}

Result<void> Fixture::OccupyName(const Attachment& attachment) {
  const NetNs ns = RH_TRY(attachment.sandbox->Open());
  const int index = testing::AddVeth(ns, attachment.ifname, ns, "other");
  return RH_TRY(OpenNetlinkRoute(ns))->AddAddress(index, *IpPrefix::Parse("192.0.2.77/32"));
}

Result<void> Fixture::Rename(const Attachment& attachment, const std::string& from, const std::string& to) {
  const auto api = RH_TRY(RouteIn(attachment));
  const auto link = RH_TRY(api->FindLink(from));
  if (!link) return Fail(ErrorCode::kNotFound, "there is no interface " + from + " in the container");
  LinkChange change;
  change.up = false;
  RH_TRY(api->ChangeLink(link->index, change));
  change = {};
  change.name = to;
  return api->ChangeLink(link->index, change);
}

Result<void> Fixture::TakeAway(const Attachment& attachment) {
  const NetNs ns = RH_TRY(attachment.sandbox->Open());
  const auto link = RH_TRY(LinkOf(attachment));
  if (!link) return Fail(ErrorCode::kNotFound, "ADD made no " + attachment.ifname);
  nl::Message message(RTM_DELLINK, 0);
  ifinfomsg header{};
  header.ifi_index = link->index;
  message.Header(header);
  if (testing::OpenRaw(ns).Request(message)) return {};
  return Rename(attachment, attachment.ifname, "elsewhere");
}

Result<std::unique_ptr<RouteApi>> Fixture::RouteIn(const Attachment& attachment) {
  return OpenNetlinkRoute(RH_TRY(attachment.sandbox->Open()));
}

Result<std::optional<Link>> Fixture::LinkOf(const Attachment& attachment) {
  return RH_TRY(RouteIn(attachment))->FindLink(attachment.ifname);
}

std::optional<bool> Fixture::AddressHeld(const Attachment& attachment) const {
  if (target_.ipam_program.empty() || !AtLeast(target_.ipam_version, "0.4.0")) return std::nullopt;
  return CallIpam(attachment, "CHECK").Succeeded();
}

}  // namespace railhead::conformance
