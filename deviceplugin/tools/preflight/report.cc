#include "deviceplugin/tools/preflight/report.h"

#include <algorithm>
#include <string_view>

namespace railhead::preflight {
namespace {

constexpr std::size_t kFitnessWidth = 9;
constexpr std::size_t kCheckWidth = 13;

std::string InColumn(std::string_view text, std::size_t width) {
  std::string padded(text);
  padded.resize(std::max(width, text.size() + 1), ' ');
  return padded;
}

std::string LinesOf(const Finding& finding) {
  std::string text;
  std::string before =
      InColumn(WordOf(finding.fitness), kFitnessWidth) + InColumn(finding.check, kCheckWidth);
  for (const std::string& detail : finding.details) {
    text += before + detail + "\n";
    before = std::string(kFitnessWidth + kCheckWidth, ' ');
  }
  if (finding.details.empty()) text += before.erase(before.find_last_not_of(' ') + 1) + "\n";
  if (!finding.fix.empty()) text += std::string(kFitnessWidth, ' ') + "fix: " + finding.fix + "\n";
  return text;
}

}  // namespace

Fitness Report::Verdict() const {
  Fitness worst = Fitness::kSkipped;
  for (const Finding& finding : findings) worst = std::max(worst, finding.fitness);
  return worst == Fitness::kSkipped ? Fitness::kUnknown : worst;
}

std::string ReportAsText(const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings) text += LinesOf(finding);
  const Fitness verdict = report.Verdict();
  const std::string text_of_verdict = verdict == Fitness::kFit ? "is fit"
                                      : verdict == Fitness::kUnfit
                                          ? "is not fit"
                                          : "may be fit or not: not all could be checked";
  return text + "node " + report.node + " " + text_of_verdict + "\n";
}

}  // namespace railhead::preflight
