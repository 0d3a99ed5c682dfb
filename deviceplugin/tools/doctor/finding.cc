#include "deviceplugin/tools/doctor/finding.h"

#include <algorithm>
#include <array>
#include <utility>

namespace railhead::doctor {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"skipped", "ok", "note", "warning", "failure"};
constexpr std::size_t kShown = 3;

}  // namespace

std::string_view NameOf(Status status) {
  return kNames.at(static_cast<std::size_t>(status));
}

Verdict& Verdict::Add(Status status, std::string text, std::string fix) {
  observations_.push_back({status, std::move(text), std::move(fix)});
  return *this;
}

Status Verdict::status() const {
  Status worst = Status::kSkipped;
  for (const Observation& one : observations_) worst = std::max(worst, one.status);
  return worst;
}

std::string Verdict::Found() const {
  std::vector<std::string> texts;
  for (const Observation& one : observations_) {
    const bool known = std::find(texts.begin(), texts.end(), one.text) != texts.end();
    if (one.status == status() && !known) texts.push_back(one.text);
  }
  std::string found;
  for (std::size_t i = 0; i < texts.size() && i < kShown; ++i) {
    if (i > 0) found += "; ";
    found += texts[i];
  }
  if (texts.size() > kShown) found += "; and " + std::to_string(texts.size() - kShown) + " more";
  return found;
}

std::string Verdict::Fix() const {
  for (const Observation& one : observations_) {
    if (one.status == status() && !one.fix.empty()) return one.fix;
  }
  return {};
}

}  // namespace railhead::doctor
