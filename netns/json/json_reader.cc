#include "netns/json/json_reader.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "netns/base/text.h"
#include "netns/json/strict_parser.h"

namespace railhead {
namespace {

using Json = nlohmann::json;

// A file with so many errors is not a configuration file at all.
constexpr std::size_t kMostErrors = 100;

// `pointer`: without its first slash; "": the place itself.
std::string Within(const std::string& place, const std::string& pointer) {
  return pointer.empty() ? place : place + "/" + pointer;
}

bool IsWithin(std::string_view part, std::string_view whole) {
  return part.starts_with(whole) && (part.size() == whole.size() || part[whole.size()] == '/');
}

}  // namespace

std::string EscapePointer(std::string_view key) {
  std::string escaped;
  for (const char c : key) {
    if (c == '~') {
      escaped += "~0";
    } else if (c == '/') {
      escaped += "~1";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

struct JsonDocument::State {
  Json json;
  std::string what;
  std::string pointer;  // of the root
  struct Wrong {
    std::string where;  // JSON pointer
    Error error;
  };
  std::vector<Wrong> wrong;

  void Add(const std::string& where, const std::string& why, std::string hint);
  [[nodiscard]] Result<void> Status() const;
  [[nodiscard]] std::vector<Error> Errors() const;
};

JsonDocument::JsonDocument(std::shared_ptr<State> state) : state_(std::move(state)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

Result<JsonDocument> JsonDocument::Parse(std::string_view text, std::string what, std::size_t max_size,
                                         std::string pointer) {
  if (text.size() > max_size) {
    return Fail(ErrorCode::kMalformed, what + ": larger than " + std::to_string(max_size) + " bytes");
  }
  auto json = ParseStrictly(text, pointer);
  if (!json) return Fail(ErrorCode::kMalformed, what + ": " + json.error());
  auto state = std::make_shared<State>();
  state->json = *std::move(json);
  state->what = std::move(what);
  state->pointer = std::move(pointer);
  return JsonDocument(std::move(state));
}

JsonReader JsonDocument::Root() const {
  JsonReader reader(state_, state_->json.is_object() ? &state_->json : nullptr, state_->pointer);
  if (!state_->json.is_object())
    reader.Fail("", std::string("is not an object but ") + state_->json.type_name());
  return reader;
}

JsonValue JsonDocument::Value() const {
  return {state_, &state_->json, state_->pointer};
}

const nlohmann::json& JsonDocument::json() const {
  return state_->json;
}

Result<void> JsonDocument::status() const {
  return state_->Status();
}

std::vector<Error> JsonDocument::errors() const {
  return state_->Errors();
}

JsonReader::JsonReader(std::shared_ptr<JsonDocument::State> state, const Json* value, std::string pointer)
    : state_(std::move(state)), value_(value), pointer_(std::move(pointer)) {}

bool JsonReader::Has(const std::string& key) const {
  return value_ != nullptr && value_->contains(key) && !(*value_)[key].is_null();
}

std::vector<std::string> JsonReader::Keys() const {
  std::vector<std::string> keys;
  if (value_ != nullptr) {
    for (const auto& item : value_->items()) keys.push_back(item.key());
  }
  return keys;
}

const Json* JsonReader::Find(const std::string& key) {
  Ignore(key);
  return Has(key) ? &(*value_)[key] : nullptr;
}

void JsonReader::Ignore(const std::string& key) {
  // A field with several forms is read several times.
  if (!Contains(known_, key)) known_.push_back(key);
}

const Json* JsonReader::Raw(const std::string& key) {
  return Find(key);
}

void JsonDocument::State::Add(const std::string& where, const std::string& why, std::string hint) {
  // An earlier error at the same place, in one of its parts or in the whole is the cause of this one.
  if (wrong.size() >= kMostErrors || std::ranges::any_of(wrong, [&](const auto& other) {
        return IsWithin(other.where, where) || IsWithin(where, other.where);
      })) {
    return;
  }
  const std::string shown = where.empty() ? "/" : where;
  wrong.push_back({where, {ErrorCode::kInvalid, what + ": " + shown + ": " + why, std::move(hint), 0}});
}

Result<void> JsonDocument::State::Status() const {
  if (!wrong.empty()) return Fail(wrong.front().error);
  return {};
}

std::vector<Error> JsonDocument::State::Errors() const {
  std::vector<Error> errors;
  errors.reserve(wrong.size());
  for (const Wrong& one : wrong) errors.push_back(one.error);
  return errors;
}

void JsonReader::Fail(const std::string& key, const std::string& why, std::string hint) {
  state_->Add(key.empty() ? pointer_ : pointer_ + "/" + EscapePointer(key), why, std::move(hint));
}

void JsonReader::FailWithin(const std::string& pointer, const std::string& why, std::string hint) {
  state_->Add(Within(pointer_, pointer), why, std::move(hint));
}

JsonValue JsonReader::At(const std::string& key) {
  return {state_, Find(key), pointer_ + "/" + EscapePointer(key)};
}

std::optional<std::string> JsonReader::String(const std::string& key) {
  return At(key).String();
}

std::optional<std::int64_t> JsonReader::Int(const std::string& key, std::int64_t min, std::int64_t max) {
  return At(key).Int(min, max);
}

std::optional<bool> JsonReader::Bool(const std::string& key) {
  return At(key).Bool();
}

std::optional<std::vector<std::string>> JsonReader::Strings(const std::string& key) {
  const auto list = At(key).List("strings");
  if (!list) return std::nullopt;
  std::vector<std::string> strings;
  for (const JsonValue& item : *list) {
    auto text = item.String();
    if (!text) return std::nullopt;
    strings.push_back(*std::move(text));
  }
  return strings;
}

std::optional<JsonReader> JsonReader::Object(const std::string& key) {
  return At(key).Object();
}

std::vector<JsonReader> JsonReader::Objects(const std::string& key) {
  std::vector<JsonReader> objects;
  for (const JsonValue& item : At(key).List("objects").value_or(std::vector<JsonValue>{}))
    objects.push_back(item.Object().value_or(JsonReader(state_, nullptr, item.pointer_)));
  return objects;
}

JsonValue::JsonValue(std::shared_ptr<JsonDocument::State> state, const Json* value, std::string pointer)
    : state_(std::move(state)), value_(value), pointer_(std::move(pointer)) {}

void JsonValue::Fail(const std::string& why, std::string hint) const {
  state_->Add(pointer_, why, std::move(hint));
}

void JsonValue::FailWithin(const std::string& pointer, const std::string& why, std::string hint) const {
  state_->Add(Within(pointer_, pointer), why, std::move(hint));
}

void JsonValue::WrongType(std::string_view wanted) const {
  Fail("is not " + std::string(wanted) + " but " +
       (value_->is_number_float() ? "a fraction" : value_->type_name()));
}

std::optional<std::string> JsonValue::String() const {
  if (value_ == nullptr) return std::nullopt;
  if (value_->is_string()) return value_->get<std::string>();
  WrongType("a string");
  return std::nullopt;
}

std::optional<std::int64_t> JsonValue::Int(std::int64_t min, std::int64_t max) const {
  if (value_ == nullptr) return std::nullopt;
  if (!value_->is_number_integer()) {
    WrongType("an integer");
    return std::nullopt;
  }
  // A number that does not fit int64 is stored as unsigned: above every range of ours.
  const bool huge =
      value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  if (huge || value_->get<std::int64_t>() < min || value_->get<std::int64_t>() > max) {
    Fail(value_->dump() + " is out of range " + std::to_string(min) + ".." + std::to_string(max));
    return std::nullopt;
  }
  return value_->get<std::int64_t>();
}

std::optional<double> JsonValue::Number(double min, double max) const {
  if (value_ == nullptr) return std::nullopt;
  if (value_->is_number() && value_->get<double>() >= min && value_->get<double>() <= max)
    return value_->get<double>();
  Fail("is not a number from " + std::to_string(std::lround(min)) + " to " +
       std::to_string(std::lround(max)));
  return std::nullopt;
}

std::optional<bool> JsonValue::Bool() const {
  if (value_ == nullptr) return std::nullopt;
  if (value_->is_boolean()) return value_->get<bool>();
  WrongType("true or false");
  return std::nullopt;
}

std::optional<JsonReader> JsonValue::Object() const {
  if (value_ == nullptr) return std::nullopt;
  if (value_->is_object()) return JsonReader(state_, value_, pointer_);
  WrongType("an object");
  return std::nullopt;
}

std::optional<std::vector<JsonValue>> JsonValue::List(std::string_view of) const {
  if (value_ == nullptr) return std::nullopt;
  if (!value_->is_array()) {
    WrongType("a list of " + std::string(of));
    return std::nullopt;
  }
  std::vector<JsonValue> items;
  items.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    items.push_back(JsonValue(state_, &(*value_)[i], pointer_ + "/" + std::to_string(i)));
  return items;
}

std::string JsonReader::RequiredString(const std::string& key) {
  auto value = String(key);
  if (!value || value->empty()) {
    Fail(key, "is required and must not be empty");
    return {};
  }
  return *value;
}

void JsonReader::Close() {
  for (const auto& key : Keys()) {
    if (Contains(known_, key)) continue;
    const auto near = Nearest(key, known_);
    Fail(key, "unknown field", near ? "did you mean '" + *near + "'?" : "known here: " + Join(known_, ", "));
  }
}

Result<void> JsonReader::status() const {
  return state_->Status();
}

std::size_t JsonReader::error_count() const {
  return state_->wrong.size();
}

std::vector<Error> JsonReader::errors() const {
  return state_->Errors();
}

}  // namespace railhead
