#include "netns/json/record_io.h"

#include <algorithm>
#include <utility>

#include "netns/base/text.h"

namespace railhead::record {

std::string Place::Pointer() const {
  if (of == nullptr) return "";
  return of->Pointer() + "/" + (key.empty() ? std::to_string(index) : EscapePointer(key));
}

void Refusal::Add(const Place& place, std::string reason) {
  if (!why.empty()) return;
  pointer = place.Pointer();
  why = std::move(reason);
}

void Refusal::AddWithin(const Place& place, const std::string& within, std::string reason) {
  if (!why.empty()) return;
  pointer = place.Pointer() + (within.empty() ? "" : "/" + within);
  why = std::move(reason);
}

std::string OutOfRange(const std::string& value, std::int64_t min, std::int64_t max) {
  return value + " is out of range " + std::to_string(min) + ".." + std::to_string(max);
}

Json WriteText(std::string text, const Place& place, Refusal& refusal) {
  if (text.find('\0') != std::string::npos) refusal.Add(place, "holds a NUL character");
  return text;
}

Json WriteTime(WallTime time, TimeForm form, const Place& place, Refusal& refusal) {
  if (form == TimeForm::kText) return FormatTime(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  return WriteInt(seconds, 0, kLastSecond, place, refusal);
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string Readable(const std::string& text) {
  if (std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; })) return text;
  return Json::parse(Dump(text)).get<std::string>();
}

void FailUnknown(const JsonValue& json, const std::string& word, const std::vector<std::string_view>& known) {
  std::string hint;
  for (std::size_t i = 0; i < known.size(); ++i)
    hint += std::string(i == 0 ? "" : i + 1 < known.size() ? ", " : " or ") + std::string(known[i]);
  json.Fail("'" + word + "' is not known", hint);
}

void Ignore(JsonReader& json, std::string_view key) {
  if (!key.ends_with('*')) return json.Ignore(std::string(key));
  key.remove_suffix(1);
  for (const std::string& one : json.Keys()) {
    if (one.starts_with(key)) json.Ignore(one);
  }
}

bool IsBlank(const JsonValue& json) {
  return json.is_there() && json.raw()->is_string() && json.raw()->get_ref<const std::string&>().empty();
}

std::optional<std::vector<JsonValue>> ItemsOf(const JsonValue& json, const FieldRules& rules,
                                              const char* of) {
  const bool is_one = rules.or_one && json.is_there() && !json.raw()->is_array();
  if (is_one && std::string_view(of) == "strings" && !json.raw()->is_string()) {
    json.Fail("is neither a string nor a list of strings", rules.hint);
    return std::nullopt;
  }
  if (is_one) return std::vector{json};
  auto items = json.List(of);
  if (items && rules.filled && items->empty()) json.Fail("must not be empty", rules.hint);
  return items;
}

std::optional<JsonValue> FieldOf(JsonReader& json, const char* key, const FieldRules& rules) {
  JsonValue field = json.At(key);
  if (IsNeeded(rules) && !field.is_there()) field.Fail("is required", rules.hint);
  if (!field.is_there() || (rules.blank && IsBlank(field))) return std::nullopt;
  return field;
}

std::optional<bool> ReadWord(const JsonValue& json, const FieldRules& rules) {
  const auto word = json.String();
  if (!word) return std::nullopt;
  if (*word == rules.yes) return true;
  if (*word == rules.no) return false;
  FailUnknown(json, *word, {rules.no, rules.yes});
  return std::nullopt;
}

std::optional<WallTime> ReadTime(const JsonValue& json, TimeForm form) {
  if (form == TimeForm::kSeconds) {
    const auto seconds = json.Int(0, kLastSecond);
    return seconds ? std::optional(WallTime(std::chrono::seconds(*seconds))) : std::nullopt;
  }
  const auto text = json.String();
  if (!text) return std::nullopt;
  const auto time = ParseTime(*text);
  if (!time) json.Fail("'" + *text + "' is not a time of the form 2026-03-01T12:00:00Z");
  return time;
}

}  // namespace railhead::record
