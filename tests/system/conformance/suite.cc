#include "tests/system/conformance/suite.h"

#include <algorithm>

namespace railhead::conformance {
namespace {

bool IsWanted(const std::string& id, const std::vector<std::string>& only) {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& wanted) {
           return id == wanted || id.compare(0, wanted.size() + 1, wanted + ".") == 0;
         });
}

// Why the check does not apply to this target; "": it applies.
std::string WhyNot(const Needs& needs, const Target& target) {
  if (needs.interface && target.kind != Kind::kInterface) return "the plugin makes no interface";
  if (needs.ipam && target.IpamType().empty()) return "the configuration has no IPAM plugin";
  if (*needs.version != '\0' && !AtLeast(target.version, needs.version)) {
    return std::string(needs.version) + " is not supported";
  }
  return {};
}

Finding RunCheck(const Check& check, const Target& target) {
  Finding finding{check.id,
                  check.title,
                  check.section,
                  check.severity,
                  Verdict::kNotApplicable,
                  WhyNot(check.needs, target)};
  if (!finding.reason.empty()) return finding;
  Fixture fixture(target);
  const auto done = check.body(fixture);
  finding.verdict = done ? Verdict::kPass : fixture.skipped() ? Verdict::kNotApplicable : Verdict::kFail;
  if (!done) finding.reason = Describe(done.error());
  return finding;
}

struct Count {
  int passed = 0;
  int failed = 0;
  int not_applicable = 0;
};

Count CountOf(const std::vector<Finding>& findings, Severity severity) {
  Count count;
  for (const auto& finding : findings) {
    if (finding.severity != severity) continue;
    count.passed += finding.verdict == Verdict::kPass ? 1 : 0;
    count.failed += finding.verdict == Verdict::kFail ? 1 : 0;
    count.not_applicable += finding.verdict == Verdict::kNotApplicable ? 1 : 0;
  }
  return count;
}

std::string Padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

constexpr Severity kSeverities[] = {Severity::kMust, Severity::kShould, Severity::kExtra};

}  // namespace

std::vector<Check> AllChecks() {
  std::vector<Check> all;
  for (const auto& part : {VersionChecks(), ErrorChecks(), EnvironmentChecks(), ConfigurationChecks(),
                           AddChecks(), ResultChecks(), CheckChecks(), DelChecks(), ChainChecks(), GcChecks(),
                           StatusChecks(), ConcurrencyChecks(), ProcessChecks()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<Finding> RunChecks(const Target& target, const std::vector<std::string>& only,
                               const std::function<void(const Finding&)>& seen) {
  std::vector<Finding> findings;
  for (const auto& check : AllChecks()) {
    if (!IsWanted(check.id, only)) continue;
    findings.push_back(RunCheck(check, target));
    seen(findings.back());
  }
  return findings;
}

std::string NameOf(Severity severity) {
  return severity == Severity::kMust ? "MUST" : severity == Severity::kShould ? "SHOULD" : "extra";
}

std::string NameOf(Verdict verdict) {
  return verdict == Verdict::kPass ? "pass" : verdict == Verdict::kFail ? "FAIL" : "n/a";
}

std::string LineOf(const Finding& finding) {
  std::string line = Padded(NameOf(finding.verdict), 5) + Padded(NameOf(finding.severity), 7) +
                     Padded(finding.id, 38) + finding.title + "\n";
  if (!finding.reason.empty()) line += "            " + finding.reason + "\n";
  return line;
}

std::string ListOfChecks() {
  std::string text;
  for (const auto& check : AllChecks()) {
    text += Padded(check.id, 38) + Padded(NameOf(check.severity), 7) + Padded(check.section, 26) +
            check.title + "\n";
  }
  return text;
}

std::string Summary(const Target& target, const std::vector<Finding>& findings) {
  std::string text = target.program + ", " + target.version + ":";
  for (const Severity severity : kSeverities) {
    const Count count = CountOf(findings, severity);
    text += " " + NameOf(severity) + " " + std::to_string(count.passed) + " passed, " +
            std::to_string(count.failed) + " failed, " + std::to_string(count.not_applicable) + " n/a;";
  }
  text.back() = '\n';
  return text;
}

std::string JsonReport(const Target& target, const std::vector<Finding>& findings) {
  Json report;
  report["plugin"] = target.program;
  report["supportedVersions"] = target.versions;
  report["version"] = target.version;
  report["findings"] = Json::array();
  for (const auto& finding : findings) {
    report["findings"].push_back({{"id", finding.id},
                                  {"title", finding.title},
                                  {"section", finding.section},
                                  {"severity", NameOf(finding.severity)},
                                  {"result", NameOf(finding.verdict)},
                                  {"reason", finding.reason}});
  }
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool Conforms(const std::vector<Finding>& findings) {
  const Count count = CountOf(findings, Severity::kMust);
  return count.failed == 0 && !findings.empty();
}

}  // namespace railhead::conformance
