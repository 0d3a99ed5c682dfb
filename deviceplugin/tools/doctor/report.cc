#include "deviceplugin/tools/doctor/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

constexpr std::array kWorstFirst = {Status::kFailure, Status::kWarning, Status::kNote, Status::kSkipped,
                                    Status::kOk};
constexpr std::size_t kStatusWidth = 9;
constexpr std::size_t kIdWidth = 24;

bool Matches(std::string_view id, std::string_view wanted) {
  return id == wanted || (id.size() > wanted.size() && id.starts_with(wanted) && id[wanted.size()] == '.');
}

// An error unless each of `wanted` is the id of a check, or begins some.
Result<void> MustExist(const std::vector<std::string>& wanted) {
  for (const std::string& one : wanted) {
    const auto checks = AllChecks();
    if (std::ranges::any_of(checks, [&](const Check& check) { return Matches(check.id, one); })) continue;
    std::vector<std::string> ids;
    for (const Check& check : checks) ids.emplace_back(check.id);
    const auto near = Nearest(one, ids);
    return Fail(ErrorCode::kInvalid, "unknown check " + one,
                near ? "did you mean " + *near + "?" : "all of them: railctl doctor --list");
  }
  return {};
}

bool IsIn(std::string_view id, const std::vector<std::string>& list) {
  return std::ranges::any_of(list, [&](const std::string& one) { return Matches(id, one); });
}

std::string Padded(std::string_view text, std::size_t width) {
  std::string padded(text);
  padded.resize(std::max(width, text.size() + 1), ' ');
  return padded;
}

std::string FindingAsText(const Finding& finding) {
  const Status status = finding.verdict.status();
  std::string text = Padded(WordOf(status), kStatusWidth) + Padded(finding.check->id, kIdWidth) +
                     finding.verdict.Found() + "\n";
  if (status < Status::kNote) return text;
  const std::string indent(kStatusWidth, ' ');
  if (status > Status::kNote) text.append(indent).append("why: ").append(finding.check->why).append("\n");
  if (const std::string fix = finding.verdict.Fix(); !fix.empty())
    text.append(indent).append("fix: ").append(fix).append("\n");
  return text;
}

std::string Milliseconds(double elapsed) {
  return std::to_string(std::lround(elapsed)) + " ms";
}

}  // namespace

Result<std::vector<const Check*>> SelectChecks(const std::vector<std::string>& only,
                                               const std::vector<std::string>& skip) {
  RH_TRY(MustExist(only));
  RH_TRY(MustExist(skip));
  std::vector<const Check*> selected;
  for (const Check& check : AllChecks()) {
    if ((only.empty() || IsIn(check.id, only)) && !IsIn(check.id, skip)) selected.push_back(&check);
  }
  return selected;
}

Status Report::Worst() const {
  Status worst = Status::kSkipped;
  for (const Finding& finding : findings) worst = std::max(worst, finding.verdict.status());
  return worst;
}

int Report::Count(Status status) const {
  return static_cast<int>(std::ranges::count_if(
      findings, [&](const Finding& finding) { return finding.verdict.status() == status; }));
}

Report RunChecks(const NodeFacts& facts, const std::vector<const Check*>& checks) {
  Report report;
  report.node = facts.node;
  for (const Check* check : checks) report.findings.push_back({check, check->judge(facts)});
  return report;
}

std::vector<std::pair<std::string, int>> Report::Counts() const {
  std::vector<std::pair<std::string, int>> counts;
  counts.reserve(kWorstFirst.size());
  for (const Status status : kWorstFirst) counts.emplace_back(WordOf(status), Count(status));
  return counts;
}

std::string ReportAsText(const Report& report) {
  std::string text;
  for (const Status status : kWorstFirst) {
    for (const Finding& finding : report.findings) {
      if (finding.verdict.status() == status) text += FindingAsText(finding);
    }
  }
  std::vector<std::string> counts;
  for (const auto& [status, count] : report.Counts()) counts.push_back(status + " " + std::to_string(count));
  return text + "\n" + std::to_string(report.findings.size()) +
         (report.findings.size() == 1 ? " check: " : " checks: ") + Join(counts, ", ") + "; " +
         Milliseconds(report.elapsed_ms) + "\n";
}

}  // namespace railhead::doctor
