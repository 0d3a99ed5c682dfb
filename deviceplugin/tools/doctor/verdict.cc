#include "deviceplugin/tools/doctor/verdict.h"

#include <algorithm>
#include <utility>

#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

constexpr std::size_t kShown = 3;

}  // namespace

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
    const bool known = Contains(texts, one.text);
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
