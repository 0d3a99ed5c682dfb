#include "tests/system/conformance/json.h"

#include "netns/base/text.h"

namespace railhead::conformance {

std::optional<Json> ParseJson(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

std::string Text(const Json& object, const std::string& key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::int64_t> Number(const Json& object, const std::string& key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::vector<Json> Objects(const Json& object, const std::string& key) {
  std::vector<Json> objects;
  if (!object.is_object()) return objects;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return objects;
  for (const auto& item : *found) {
    if (item.is_object()) objects.push_back(item);
  }
  return objects;
}

std::optional<std::vector<std::int64_t>> VersionNumbers(const std::string& version) {
  std::vector<std::int64_t> numbers;
  for (const auto& part : Split(version, '.')) {
    const auto number = ParseInt(part);
    if (!number || *number < 0) return std::nullopt;
    numbers.push_back(*number);
  }
  if (numbers.size() != 3) return std::nullopt;
  return numbers;
}

bool AtLeast(const std::string& version, const std::string& least) {
  const auto a = VersionNumbers(version);
  const auto b = VersionNumbers(least);
  return a && b && *a >= *b;
}

}  // namespace railhead::conformance
