// VERSION and the form of errors.
#include <algorithm>

#include "tests/system/conformance/check.h"

namespace railhead::conformance {
namespace {

Result<Json> AskVersion(Fixture& fixture, const std::string& input) {
  Request request;
  request.command = "VERSION";
  request.input = input;
  const Outcome outcome = fixture.Call({}, request);
  RH_TRY(Expect(outcome.Succeeded(), "VERSION failed: " + outcome.Describe()));
  auto json = ParseJson(outcome.out);
  if (!json || !json->is_object()) {
    return Fail(ErrorCode::kConflict, "VERSION printed no JSON object: " + outcome.Describe());
  }
  return std::move(*json);
}

std::string VersionInput(const std::string& version) {
  return Json{{"cniVersion", version}}.dump();
}

Result<void> AnswersVersion(Fixture& fixture) {
  const Json json = RH_TRY(AskVersion(fixture, VersionInput("1.0.0")));
  RH_TRY(Expect(!Text(json, "cniVersion").empty(), "no cniVersion in " + json.dump()));
  const auto list = json.find("supportedVersions");
  RH_TRY(Expect(list != json.end() && list->is_array() && !list->empty(),
                "supportedVersions is no list with an entry: " + json.dump()));
  for (const auto& version : *list) {
    RH_TRY(Expect(version.is_string() && VersionNumbers(version.get<std::string>()),
                  "supportedVersions has " + version.dump()));
  }
  return {};
}

Result<void> EchoesVersion(Fixture& fixture) {
  for (const auto& version : fixture.target().versions) {
    const Json json = RH_TRY(AskVersion(fixture, VersionInput(version)));
    RH_TRY(Expect(Text(json, "cniVersion") == version, "asked in " + version + ", answered " + json.dump()));
  }
  return {};
}

Result<void> AnswersVersionBare(Fixture& fixture) {
  (void)RH_TRY(AskVersion(fixture, ""));
  return {};
}

// An error that every plugin reports: the configuration has no name.
Result<Json> SomeError(Fixture& fixture, const std::string& version) {
  Request request;
  request.command = "ADD";
  request.version = version;
  request.patch = {{"name", ""}};
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  const Outcome outcome = fixture.Call(*attachment, request);
  RH_TRY(Expect(outcome.status != 0, "ADD without a network name succeeded"));
  auto json = ParseJson(outcome.out);
  if (!json || !json->is_object()) {
    return Fail(ErrorCode::kConflict,
                "standard output is not one JSON object and nothing else: " + outcome.Describe());
  }
  return std::move(*json);
}

Result<void> ErrorHasFields(Fixture& fixture) {
  const Json error = RH_TRY(SomeError(fixture, fixture.target().version));
  RH_TRY(Expect(Number(error, "code").value_or(0) > 0, "no code above 0 in " + error.dump()));
  RH_TRY(Expect(!Text(error, "msg").empty(), "no msg in " + error.dump()));
  const auto details = error.find("details");
  return Expect(details == error.end() || details->is_string(), "details is no text in " + error.dump());
}

Result<void> ErrorHasVersion(Fixture& fixture) {
  for (const auto& version : fixture.target().versions) {
    const Json error = RH_TRY(SomeError(fixture, version));
    RH_TRY(Expect(Text(error, "cniVersion") == version,
                  "cniVersion is not the configuration's " + version + " in " + error.dump()));
  }
  return {};
}

Result<void> ErrorOfOldCheck(Fixture& fixture) {
  if (!fixture.target().Supports("0.3.1")) return fixture.NotApplicable("0.3.1 is not supported");
  Request request;
  request.command = "CHECK";
  request.version = "0.3.1";
  const Attachment* attachment = RH_TRY(fixture.NewAttachment());
  return fixture.MustFail(*attachment, request, "although 0.3.1 has no CHECK");
}

}  // namespace

std::vector<Check> VersionChecks() {
  return {
      {"version.answer",
       "VERSION answers with cniVersion and supportedVersions",
       "2 VERSION",
       Severity::kMust,
       {},
       AnswersVersion},
      {"version.echo",
       "VERSION answers in the version that it was asked in",
       "5 Version",
       Severity::kMust,
       {},
       EchoesVersion},
      {"version.bare",
       "VERSION answers to an empty standard input",
       "2 VERSION",
       Severity::kExtra,
       {},
       AnswersVersionBare},
      {"version.old-check",
       "CHECK is refused in a version that does not have it",
       "2 CHECK",
       Severity::kShould,
       {},
       ErrorOfOldCheck},
  };
}

std::vector<Check> ErrorChecks() {
  return {
      {"error.fields",
       "An error is one JSON object with code and msg",
       "5 Error",
       Severity::kShould,
       {},
       ErrorHasFields},
      {"error.version",
       "An error has the configuration's cniVersion",
       "5 Error",
       Severity::kShould,
       {},
       ErrorHasVersion},
  };
}

}  // namespace railhead::conformance
