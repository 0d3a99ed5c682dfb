// The plugin as a process among others: many at once, odd input, nothing left running.
#include <algorithm>
#include <set>
#include <thread>

#include "netns/base/text.h"
#include "tests/system/conformance/check.h"
#include "tests/system/conformance/result_shape.h"

namespace railhead::conformance {
namespace {

constexpr std::chrono::seconds kEnd{15};
constexpr std::chrono::milliseconds kPause{20};

// Runs `call` for all attachments at the same time.
std::vector<Outcome> AtOnce(const std::vector<Attachment*>& attachments,
                            const std::function<Outcome(const Attachment&)>& call) {
  std::vector<Outcome> outcomes(attachments.size());
  std::vector<std::thread> threads;
  threads.reserve(attachments.size());
  for (std::size_t i = 0; i < attachments.size(); ++i) {
    threads.emplace_back([&, i] { outcomes[i] = call(*attachments[i]); });
  }
  for (auto& thread : threads) thread.join();
  return outcomes;
}

Result<void> AllAtOnce(Fixture& fixture, const std::vector<Attachment*>& attachments,
                       const std::string& command) {
  const auto outcomes = AtOnce(attachments, [&](const Attachment& attachment) {
    Request request;
    request.command = command;
    request.prev_result = command == "ADD" ? Json() : attachment.result;
    return fixture.Call(attachment, request);
  });
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    RH_TRY(Expect(outcomes[i].Succeeded(), "one of " + std::to_string(outcomes.size()) + " " + command +
                                               " at once failed: " + outcomes[i].Describe()));
    if (command == "ADD") attachments[i]->result = ParseJson(outcomes[i].out).value_or(Json());
  }
  return {};
}

Result<void> NoAddressTwice(const std::vector<Attachment*>& attachments) {
  std::set<IpPrefix> seen;
  for (const auto* attachment : attachments) {
    for (const auto& ip : IpsOf(attachment->result)) {
      RH_TRY(Expect(seen.insert(ip.address).second, ip.address.ToString() + " was given twice"));
    }
  }
  return {};
}

Result<void> ManyContainers(Fixture& fixture) {
  const auto host = RH_TRY(Fixture::SeeHost());
  std::vector<Attachment*> attachments;
  for (int i = 0; i < fixture.target().containers; ++i)
    attachments.push_back(RH_TRY(fixture.NewAttachment()));
  for (int round = 0; round < 2; ++round) {
    RH_TRY(AllAtOnce(fixture, attachments, "ADD"));
    RH_TRY(NoAddressTwice(attachments));
    if (AtLeast(fixture.target().version, "0.4.0")) RH_TRY(AllAtOnce(fixture, attachments, "CHECK"));
    RH_TRY(AllAtOnce(fixture, attachments, "DEL"));
  }
  return fixture.ExpectHostSame(host, "after ADD and DEL of many containers");
}

// The runtime starts one pod while it ends another.
Result<void> AddsWhileOthersEnd(Fixture& fixture) {
  std::vector<Attachment*> old;
  std::vector<Attachment*> young;
  for (int i = 0; i < fixture.target().containers / 2; ++i) {
    old.push_back(RH_TRY(fixture.Attached()));
    young.push_back(RH_TRY(fixture.NewAttachment()));
  }
  auto all = old;
  all.insert(all.end(), young.begin(), young.end());
  const auto outcomes = AtOnce(all, [&](const Attachment& attachment) {
    Request request;
    request.command = attachment.result.is_null() ? "ADD" : "DEL";
    request.prev_result = attachment.result;
    return fixture.Call(attachment, request);
  });
  for (const auto& outcome : outcomes) {
    RH_TRY(Expect(outcome.Succeeded(), "ADD of some and DEL of others at once: " + outcome.Describe()));
  }
  return {};
}

Result<void> SeveralInterfaces(Fixture& fixture) {
  const Attachment* first = RH_TRY(fixture.Attached());
  Attachment* second = RH_TRY(fixture.NewAttachmentIn(*first, "net1"));
  RH_TRY(fixture.Add(*second));
  RH_TRY(NoAddressTwice({const_cast<Attachment*>(first), second}));
  RH_TRY(fixture.Del(*first));
  if (AtLeast(fixture.target().version, "0.4.0")) RH_TRY(fixture.Check(*second));
  return fixture.Del(*second);
}

Result<void> TakesInput(Fixture& fixture, Feeding feeding, std::size_t more) {
  Attachment* attachment = RH_TRY(fixture.NewAttachment());
  Request request;
  request.feeding = feeding;
  if (more > 0) request.patch = {{"args", {{"conformance", std::string(more, 'x')}}}};
  return fixture.Add(*attachment, request);
}

Result<void> SurvivesClosedInput(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  Request request;
  request.command = "ADD";
  request.feeding = Feeding::kClosed;
  return fixture.MustFail(*attachment, request, "although standard input is closed");
}

// Cut off, doubled, nested, and wrong types. A plugin need not read all fields, so some calls may succeed. It
// must end by itself and report errors in JSON.
Result<void> SurvivesGarbage(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  const std::string whole = fixture.target().config.dump();
  std::vector<std::string> inputs = {
      std::string(20000, '['),
      std::string(20000, '{'),
      "null",
      "0",
      "\"\"",
      "{}",
      R"({"cniVersion":{},"name":[],"type":null})",
      whole + whole,
      R"({"cniVersion":"1.0.0","name":"n","prevResult":7,"ipam":[],"type":"t"})",
      R"({"cniVersion":"1.0.0","name":"n","prevResult":{"ips":[{"address":1}]}})"};
  for (std::size_t i = 1; i < 8; ++i) inputs.push_back(whole.substr(0, whole.size() * i / 8));
  for (const auto& input : inputs) {
    for (const char* command : {"ADD", "DEL"}) {
      Request request;
      request.command = command;
      request.input = input;
      const Outcome outcome = fixture.Call(*attachment, request);
      const std::string what = std::string(command) + " with " + input.substr(0, 60);
      RH_TRY(Expect(outcome.status >= 0 && !outcome.timed_out, what + ": " + outcome.Describe()));
      const auto json = ParseJson(outcome.out);
      RH_TRY(Expect(outcome.status == 0 || (json && json->is_object()),
                    what + " printed no JSON: " + outcome.Describe()));
    }
  }
  return {};
}

Result<void> ClosesPipes(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  Request request;
  for (const char* command : {"ADD", "DEL"}) {
    request.command = command;
    const Outcome outcome = fixture.Call(*attachment, request);
    RH_TRY(Expect(outcome.Succeeded(), std::string(command) + " failed: " + outcome.Describe()));
    RH_TRY(
        Expect(!outcome.pipes_held, std::string(command) + " has ended, but a child keeps its output open"));
  }
  return {};
}

// Waits until the list is empty; the error names the remaining entries.
Result<void> WaitForNone(const std::function<std::vector<std::string>()>& list, const std::string& what) {
  for (const auto limit = std::chrono::steady_clock::now() + kEnd;;) {
    const auto left = list();
    if (left.empty()) return {};
    if (std::chrono::steady_clock::now() >= limit) return Fail(ErrorCode::kConflict, what + Join(left, ", "));
    std::this_thread::sleep_for(kPause);
  }
}

Result<void> LeavesNoProcess(Fixture& fixture) {
  const auto before = LivingChildren();
  const Attachment* attachment = RH_TRY(fixture.Attached());
  RH_TRY(fixture.Del(*attachment));
  return WaitForNone(
      [&] {
        auto now = LivingChildren();
        now.erase(std::remove_if(now.begin(), now.end(),
                                 [&](const std::string& child) {
                                   return std::find(before.begin(), before.end(), child) != before.end();
                                 }),
                  now.end());
        return now;
      },
      "still running after ADD and DEL: ");
}

Result<void> FreesNamespace(Fixture& fixture) {
  const Attachment* attachment = RH_TRY(fixture.Attached());
  const auto inode = attachment->sandbox->inode();
  RH_TRY(fixture.Del(*attachment));
  attachment->sandbox->Destroy();
  return WaitForNone([&] { return UsersOfNamespace(inode); }, "the container's namespace is kept by ");
}

}  // namespace

std::vector<Check> ConcurrencyChecks() {
  return {
      {"many.containers",
       "ADD, CHECK and DEL of many containers at once, no address twice",
       "3 Lifecycle",
       Severity::kMust,
       {},
       ManyContainers},
      {"many.turnover",
       "ADD of some containers while others get DEL",
       "3 Lifecycle",
       Severity::kMust,
       {},
       AddsWhileOthersEnd},
      {"many.interfaces",
       "Two interfaces in one container, DEL of one spares the other",
       "3 Lifecycle",
       Severity::kMust,
       {},
       SeveralInterfaces},
  };
}

std::vector<Check> ProcessChecks() {
  const auto takes = [](Feeding feeding, std::size_t more) {
    return [=](Fixture& fixture) { return TakesInput(fixture, feeding, more); };
  };
  constexpr std::size_t kBig = std::size_t{256} << 10;
  return {
      {"process.slow-input",
       "ADD works when the configuration comes in pieces",
       "2 Overview",
       Severity::kMust,
       {},
       takes(Feeding::kSlow, 0)},
      {"process.big-input",
       "ADD works with a configuration of 256 KiB",
       "2 Overview",
       Severity::kExtra,
       {},
       takes(Feeding::kWhole, kBig)},
      {"process.closed-input",
       "A closed standard input is an error",
       "2 Overview",
       Severity::kExtra,
       {},
       SurvivesClosedInput},
      {"process.garbage",
       "Garbage is an error, never a crash",
       "5 Error",
       Severity::kExtra,
       {},
       SurvivesGarbage},
      {"process.pipes",
       "No child keeps standard output open: the runtime would wait",
       "libcni",
       Severity::kMust,
       {},
       ClosesPipes},
      {"process.children",
       "After DEL nothing of the plugin runs",
       "2 DEL",
       Severity::kExtra,
       {},
       LeavesNoProcess},
      {"process.namespace",
       "After DEL nothing keeps the container's namespace",
       "2 DEL",
       Severity::kExtra,
       {},
       FreesNamespace},
  };
}

}  // namespace railhead::conformance
