#include "deviceplugin/tools/migrate/key_outcomes.h"

#include <algorithm>

namespace railhead::migrate {
namespace {

using Json = nlohmann::json;

bool HasKeys(const Json& value) {
  if (value.is_object()) return !value.empty();
  return value.is_array() && std::ranges::any_of(value, HasKeys);
}

bool IsAtOrBelow(std::string_view key, std::string_view pointer) {
  return key.starts_with(pointer) && (key.size() == pointer.size() || key[pointer.size()] == '/');
}

}  // namespace

std::string Below(std::string_view pointer, std::string_view key) {
  std::string below(pointer);
  below += '/';
  for (const char c : key) {
    if (c == '~') {
      below += "~0";
    } else if (c == '/') {
      below += "~1";
    } else {
      below += c;
    }
  }
  return below;
}

KeyOutcomes::KeyOutcomes(const Json& document) {
  Add(document, "");
}

void KeyOutcomes::Add(const Json& value, const std::string& pointer) {
  if (!HasKeys(value)) {
    Line line;
    line.result = {pointer, KeyOutcome::kNeedsDecision, "is unknown"};
    if (value.is_null()) line = {{pointer, KeyOutcome::kDropped, "null means absent"}, true};
    lines_.push_back(std::move(line));
    return;
  }
  if (value.is_object()) {
    for (const auto& item : value.items()) Add(item.value(), Below(pointer, item.key()));
    return;
  }
  for (std::size_t i = 0; i < value.size(); ++i) Add(value[i], Below(pointer, std::to_string(i)));
}

void KeyOutcomes::Set(const std::string& pointer, KeyOutcome outcome, const std::string& what) {
  for (Line& line : lines_) {
    if (IsAtOrBelow(line.result.key, pointer)) line = {{line.result.key, outcome, what}, true};
  }
}

void KeyOutcomes::SetRemaining(const std::string& pointer, KeyOutcome outcome, const std::string& what) {
  for (Line& line : lines_) {
    if (!line.is_set && IsAtOrBelow(line.result.key, pointer))
      line = {{line.result.key, outcome, what}, true};
  }
}

std::vector<KeyResult> KeyOutcomes::All() const {
  std::vector<KeyResult> results;
  results.reserve(lines_.size());
  for (const Line& line : lines_) results.push_back(line.result);
  return results;
}

}  // namespace railhead::migrate
