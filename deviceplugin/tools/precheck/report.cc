#include "deviceplugin/tools/precheck/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace railhead::precheck {
namespace {

constexpr std::size_t kFitnessWidth = 9;
constexpr std::size_t kCheckWidth = 11;

std::string InColumn(std::string_view text, std::size_t width) {
  std::string padded(text);
  padded.resize(std::max(width, text.size() + 1), ' ');
  return padded;
}

std::string LinesOf(const Finding& finding) {
  std::string text;
  std::string before =
      InColumn(NameOf(finding.fitness), kFitnessWidth) + InColumn(finding.check, kCheckWidth);
  for (const std::string& detail : finding.details) {
    text += before + detail + "\n";
    before = std::string(kFitnessWidth + kCheckWidth, ' ');
  }
  if (finding.details.empty()) text += before.erase(before.find_last_not_of(' ') + 1) + "\n";
  if (!finding.fix.empty()) text += std::string(kFitnessWidth, ' ') + "fix: " + finding.fix + "\n";
  return text;
}

}  // namespace

std::string_view NameOf(Fitness fitness) {
  switch (fitness) {
    case Fitness::kSkipped:
      return "skipped";
    case Fitness::kFit:
      return "fit";
    case Fitness::kUnknown:
      return "unknown";
    case Fitness::kUnfit:
      return "unfit";
  }
  return "";
}

Fitness Report::Verdict() const {
  Fitness worst = Fitness::kSkipped;
  for (const Finding& finding : findings) worst = std::max(worst, finding.fitness);
  return worst == Fitness::kSkipped ? Fitness::kUnknown : worst;
}

nlohmann::json ReportAsJson(const Report& report) {
  nlohmann::json checks = nlohmann::json::array();
  for (const Finding& finding : report.findings) {
    nlohmann::json one = {
        {"check", finding.check}, {"fitness", NameOf(finding.fitness)}, {"details", finding.details}};
    if (!finding.fix.empty()) one["fix"] = finding.fix;
    checks.push_back(std::move(one));
  }
  return {{"node", report.node}, {"fitness", NameOf(report.Verdict())}, {"checks", std::move(checks)}};
}

std::string ReportAsText(const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings) text += LinesOf(finding);
  const Fitness verdict = report.Verdict();
  const std::string said = verdict == Fitness::kFit     ? "is fit"
                           : verdict == Fitness::kUnfit ? "is not fit"
                                                        : "may be fit or not: not all could be judged";
  return text + "node " + report.node + " " + said + "\n";
}

}  // namespace railhead::precheck
