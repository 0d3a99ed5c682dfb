// Wrong input: environment, configuration, version.
//
// Each wrong input has two checks. The plugin refuses it and changes nothing; and the error has the code of
// the specification.
#include <algorithm>

#include "tests/system/conformance/check.h"

namespace railhead::conformance {
namespace {

struct WrongInput {
  std::string id;
  std::string title;  // "ADD ... "
  Severity severity;  // of the refusal
  Request request;
  std::vector<int> codes;  // one of these; empty: any code
  std::string names;       // the message must contain it; "": any message
};

using Environment = std::map<std::string, std::optional<std::string>>;

Result<void> IsRefused(Fixture& fixture, const WrongInput& wrong) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  const auto container = RH_TRY(Fixture::See(*attachment));
  const auto host = RH_TRY(Fixture::SeeHost());
  RH_TRY(fixture.MustFail(*attachment, wrong.request, "although " + wrong.title));
  RH_TRY(fixture.ExpectSame(*attachment, container, "a refused " + wrong.request.command));
  return fixture.ExpectHostSame(host, "a refused " + wrong.request.command);
}

Result<void> HasCode(Fixture& fixture, const WrongInput& wrong) {
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  const Outcome outcome = fixture.Call(*attachment, wrong.request);
  RH_TRY(Expect(outcome.status != 0, wrong.request.command + " succeeded"));
  const auto error = ParseJson(outcome.out);
  const auto code = error ? Number(*error, "code") : std::nullopt;
  if (!code) return Fail(ErrorCode::kConflict, "no code on standard output: " + outcome.Describe());
  const bool expected = std::find(wrong.codes.begin(), wrong.codes.end(), *code) != wrong.codes.end();
  RH_TRY(Expect(expected, "the code is " + std::to_string(*code) + ", not " +
                              std::to_string(wrong.codes.front()) + ": " + outcome.Describe()));
  if (wrong.names.empty()) return {};
  const std::string said = Text(*error, "msg") + Text(*error, "details");
  return Expect(said.find(wrong.names) != std::string::npos,
                "the message does not name " + wrong.names + ": " + outcome.Describe());
}

std::vector<Check> ChecksOf(const std::vector<WrongInput>& inputs, const std::string& section) {
  std::vector<Check> checks;
  for (const auto& wrong : inputs) {
    Needs needs;
    if (wrong.request.command == "CHECK") needs.version = "0.4.0";
    checks.push_back({wrong.id, "Refused, nothing touched: " + wrong.title, section, wrong.severity, needs,
                      [wrong](Fixture& fixture) { return IsRefused(fixture, wrong); }});
    if (wrong.codes.empty()) continue;
    checks.push_back({wrong.id + ".code", "Code " + std::to_string(wrong.codes.front()) + ": " + wrong.title,
                      "5 Error", Severity::kShould, needs,
                      [wrong](Fixture& fixture) { return HasCode(fixture, wrong); }});
  }
  return checks;
}

Request With(const std::string& command, Environment environment) {
  Request request;
  request.command = command;
  request.environment = std::move(environment);
  return request;
}

Request WithInput(const std::string& input) {
  Request request;
  request.command = "ADD";
  request.input = input;
  return request;
}

Request WithPatch(Json patch) {
  Request request;
  request.command = "ADD";
  request.patch = std::move(patch);
  return request;
}

WrongInput Interface(const std::string& id, const std::string& title, const std::string& name) {
  return {"environment." + id, title, Severity::kMust, With("ADD", {{"CNI_IFNAME", name}}), {4},
          "CNI_IFNAME"};
}

}  // namespace

std::vector<Check> EnvironmentChecks() {
  const auto missing = [](const std::string& id, const std::string& command, const std::string& name) {
    return WrongInput{"environment." + id,
                      name + " is missing for " + command,
                      Severity::kMust,
                      With(command, {{name, std::nullopt}}),
                      {4},
                      name};
  };
  const auto container = [](const std::string& id, const std::string& title, const std::string& name) {
    return WrongInput{
        "environment." + id, title, Severity::kShould, With("ADD", {{"CNI_CONTAINERID", name}}), {4}, ""};
  };
  const std::vector<WrongInput> inputs = {
      missing("no-command", "ADD", "CNI_COMMAND"),
      {"environment.unknown-command",
       "CNI_COMMAND is FROBNICATE",
       Severity::kMust,
       With("FROBNICATE", {}),
       {4},
       ""},
      {"environment.lower-case-command", "CNI_COMMAND is add", Severity::kShould, With("add", {}), {4}, ""},
      missing("add-no-containerid", "ADD", "CNI_CONTAINERID"),
      missing("add-no-netns", "ADD", "CNI_NETNS"),
      missing("add-no-ifname", "ADD", "CNI_IFNAME"),
      missing("del-no-containerid", "DEL", "CNI_CONTAINERID"),
      missing("del-no-ifname", "DEL", "CNI_IFNAME"),
      missing("check-no-containerid", "CHECK", "CNI_CONTAINERID"),
      missing("check-no-netns", "CHECK", "CNI_NETNS"),
      missing("check-no-ifname", "CHECK", "CNI_IFNAME"),
      container("containerid-dash", "CNI_CONTAINERID begins with a dash", "-c1"),
      container("containerid-slash", "CNI_CONTAINERID has a slash", "../c1"),
      container("containerid-blank", "CNI_CONTAINERID has a blank", "c 1"),
      Interface("ifname-long", "CNI_IFNAME has 16 characters", "interface-name-x"),
      Interface("ifname-slash", "CNI_IFNAME has a slash", "a/b"),
      Interface("ifname-colon", "CNI_IFNAME has a colon", "a:b"),
      Interface("ifname-blank", "CNI_IFNAME has a blank", "a b"),
      Interface("ifname-dot", "CNI_IFNAME is .", "."),
      Interface("ifname-dots", "CNI_IFNAME is ..", ".."),
  };
  return ChecksOf(inputs, "2 Parameters");
}

std::vector<Check> ConfigurationChecks() {
  const auto broken = [](const std::string& id, const std::string& title, const std::string& input) {
    return WrongInput{"configuration." + id, title, Severity::kMust, WithInput(input), {6}, ""};
  };
  const auto patched = [](const std::string& id, const std::string& title, Severity severity, Json patch,
                          std::vector<int> codes) {
    return WrongInput{"configuration." + id, title, severity, WithPatch(std::move(patch)),
                      std::move(codes),      ""};
  };
  std::vector<WrongInput> inputs = {
      broken("empty", "standard input is empty", ""),
      broken("broken", "the configuration is cut off", R"({"cniVersion": "1.0.0", "name": )"),
      {"configuration.no-object",
       "the configuration is a list",
       Severity::kMust,
       WithInput("[]"),
       {6, 7},
       ""},
      broken("binary", "the configuration is not text", std::string("\x00\xff\xfe{}", 5)),
      patched("no-name", "the configuration has no name", Severity::kMust, {{"name", nullptr}}, {7}),
      patched("empty-name", "the name is empty", Severity::kMust, {{"name", ""}}, {7}),
      patched("name-dash", "the name begins with a dash", Severity::kShould, {{"name", "-net"}}, {7}),
      patched("name-slash", "the name has a slash", Severity::kShould, {{"name", "../net"}}, {7}),
      patched("name-blank", "the name has a blank", Severity::kShould, {{"name", "a net"}}, {7}),
      patched("name-number", "the name is a number", Severity::kShould, {{"name", 7}}, {7, 6}),
      patched("no-type", "the configuration has no type", Severity::kExtra, {{"type", nullptr}}, {}),
      patched("version-future", "cniVersion is 99.0.0", Severity::kMust, {{"cniVersion", "99.0.0"}}, {1}),
      patched("version-word", "cniVersion is a word", Severity::kShould, {{"cniVersion", "latest"}}, {1, 6}),
      patched("version-number", "cniVersion is a number", Severity::kShould, {{"cniVersion", 1}}, {6, 7, 1}),
  };
  auto checks = ChecksOf(inputs, "1 Configuration format");
  const auto sandboxes = ChecksOf({{"environment.netns-missing",
                                    "nothing is at CNI_NETNS",
                                    Severity::kMust,
                                    With("ADD", {{"CNI_NETNS", "/run/netns/nothing-here"}}),
                                    {},
                                    ""},
                                   {"environment.netns-file",
                                    "CNI_NETNS is an ordinary file",
                                    Severity::kMust,
                                    With("ADD", {{"CNI_NETNS", "/proc/self/status"}}),
                                    {},
                                    ""},
                                   {"environment.netns-directory",
                                    "CNI_NETNS is a directory",
                                    Severity::kMust,
                                    With("ADD", {{"CNI_NETNS", "/run/netns"}}),
                                    {},
                                    ""},
                                   {"environment.netns-own",
                                    "CNI_NETNS is the host's own namespace",
                                    Severity::kExtra,
                                    With("ADD", {{"CNI_NETNS", "/proc/self/ns/net"}}),
                                    {},
                                    ""}},
                                  "2 ADD");
  for (auto check : sandboxes) {
    check.needs.interface = true;
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace railhead::conformance
