// Reads a record from JSON. Errors stick in the JsonReader, with their place.
//
// `close`: unknown fields are errors, too.
// Threads: as JsonReader.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "netns/json/record_forms.h"

namespace railhead::record {

// `whole`: the JSON object has the fields of this record alone.
template <typename T>
void ReadFields(T& object, JsonReader& json, bool close, bool whole);

void FailUnknown(const JsonValue& json, const std::string& word, const std::vector<std::string_view>& known);
// Ignores a key, or with "*" at its end every key that begins so.
void Ignore(JsonReader& json, std::string_view key);
bool IsBlank(const JsonValue& json);  // an empty text
// The elements of a list, or the one value in its place (FieldRules::or_one). `of`: strings, numbers,
// objects.
std::optional<std::vector<JsonValue>> ItemsOf(const JsonValue& json, const FieldRules& rules, const char* of);
// The value of a field; nullopt: nothing to read.
std::optional<JsonValue> FieldOf(JsonReader& json, const char* key, const FieldRules& rules);
std::optional<bool> ReadWord(const JsonValue& json, const FieldRules& rules);
std::optional<WallTime> ReadTime(const JsonValue& json, TimeForm form);

template <typename E>
std::optional<E> ReadEnum(const JsonValue& json) {
  const auto word = json.String();
  if (!word) return std::nullopt;
  const auto value = FromWord<E>(*word);
  if (value) return value;
  std::vector<std::string_view> known;
  known.reserve(Names<E>::kAll.size());
  for (const auto& [name, unused] : Names<E>::kAll) known.emplace_back(name);
  FailUnknown(json, *word, known);
  return std::nullopt;
}

template <typename T>
std::optional<T> ReadText(const JsonValue& json, const FieldRules& rules) {
  const auto text = json.String();
  if (!text) return std::nullopt;
  auto value = TextForm<T>::Read(*text);
  if (value) return *std::move(value);
  if constexpr (requires { value.error(); }) {
    json.Fail(value.error().message, *rules.hint != '\0' ? rules.hint : value.error().hint);
  } else {
    json.Fail("'" + *text + "' " + TextForm<T>::kWrong, rules.hint);
  }
  return std::nullopt;
}

template <typename T>
std::optional<T> ReadValue(const JsonValue& json, const FieldRules& rules, bool close);

template <typename T>
void AddTo(std::vector<T>& list, T value) {
  list.push_back(std::move(value));
}
template <typename T>
void AddTo(std::set<T>& list, T value) {
  list.insert(std::move(value));
}
template <typename V>
void AddTo(std::map<std::string, V>& object, std::pair<std::string, V> member) {
  object.insert(std::move(member));
}

// For the message.
template <typename T>
constexpr const char* NameOfMany() {
  if constexpr (kIsList<T>) {
    return HasShape<typename T::value_type> ? "lists of objects" : "lists";
  } else {
    return HasShape<T> ? "objects" : std::is_arithmetic_v<T> ? "numbers" : "strings";
  }
}

template <typename T>
std::optional<T> ReadList(const JsonValue& json, const FieldRules& rules, bool close) {
  using Element = typename T::value_type;
  const auto items = ItemsOf(json, rules, NameOfMany<Element>());
  if (!items) return std::nullopt;
  T list;
  std::set<std::string> keys;
  for (const JsonValue& item : *items) {
    if constexpr (HasIsKnown<Element>) {
      auto object = item.Object();
      if (object && !Shape<Element>::IsKnown(*object)) continue;
    }
    auto one = ReadValue<Element>(item, rules, close);
    if (!one) continue;
    if constexpr (HasKey<Element>) {
      if (const std::string key = Shape<Element>::Key(*one); !keys.insert(key).second)
        item.Fail("'" + key + "' is there twice");
    }
    AddTo(list, *std::move(one));
  }
  return list;
}

template <typename T>
std::optional<T> ReadDictionary(const JsonValue& json, const FieldRules& rules, bool close) {
  using Value = typename T::value_type::second_type;
  auto object = json.Object();
  if (!object) return std::nullopt;
  T members;
  for (const std::string& key : object->Keys()) {
    const JsonValue member = object->At(key);
    if (auto one = ReadValue<Value>(member, rules, close))
      AddTo(members, std::pair<std::string, Value>(key, *std::move(one)));
  }
  return members;
}

template <typename T>
std::optional<T> ReadNumber(const JsonValue& json, std::int64_t min, std::int64_t max) {
  const auto value = json.Int(min, max);
  return value ? std::optional<T>(static_cast<T>(*value)) : std::nullopt;
}

// Reads the JSON over the present members of `object`; false: the JSON is not an object.
template <typename T>
bool ReadObject(const JsonValue& json, T& object, bool close) {
  if constexpr (HasSwitch<T>) {
    if (json.raw()->is_boolean()) {
      Shape<T>::Switch(object, *json.Bool());
      return true;
    }
    if (!json.raw()->is_object()) json.WrongType("an object, true or false");
  }
  auto reader = json.Object();
  if (!reader) return false;
  ReadFields(object, *reader, close, true);
  return true;
}

template <typename T>
std::optional<T> ReadValue(const JsonValue& json, const FieldRules& rules, bool close) {
  if constexpr (std::same_as<T, bool>) {
    return rules.no == nullptr ? json.Bool() : ReadWord(json, rules);
  } else if constexpr (std::integral<T>) {
    return ReadNumber<T>(json, SmallestOf<T>(rules), LargestOf<T>(rules));
  } else if constexpr (std::floating_point<T>) {
    return json.Number(static_cast<double>(rules.min), static_cast<double>(rules.max));
  } else if constexpr (std::same_as<T, std::string>) {
    return json.String();
  } else if constexpr (std::same_as<T, WallTime>) {
    return ReadTime(json, rules.time);
  } else if constexpr (HasNames<T>) {
    return ReadEnum<T>(json);
  } else if constexpr (kIsDuration<T> || std::is_enum_v<T>) {
    return ReadNumber<T>(json, rules.min, rules.max);
  } else if constexpr (HasTextForm<T>) {
    return ReadText<T>(json, rules);
  } else if constexpr (kIsDictionary<T>) {
    return ReadDictionary<T>(json, rules, close);
  } else if constexpr (kIsList<T>) {
    return ReadList<T>(json, rules, close);
  } else {
    static_assert(HasShape<T>, "a member's type has no form in JSON (record.h)");
    T object{};
    return ReadObject(json, object, close) ? std::optional<T>(std::move(object)) : std::nullopt;
  }
}

// record_schema.h has it: a Form's Schema() that needs it is made only where that is included.
template <typename T>
Json ObjectSchema(const T& defaults);

// Of a Form that is written as a text.
struct StringForm {
  static Json Schema() { return {{"type", "string"}}; }
};

// A value that other code reads: kept as its JSON text.
template <auto kMember>
struct RawForm {
  template <typename T>
  static void Read(const JsonValue& json, T& object) {
    object.*kMember = json.raw()->dump();
  }
  template <typename T>
  static Json Write(const T& object) {
    return (object.*kMember).empty() ? Json() : Json::parse(object.*kMember);
  }
  static Json Schema() { return Json::object(); }
};

// The same, of an object that has to have the fields of T.
template <typename T, auto kMember>
struct CheckedRawForm : RawForm<kMember> {
  static void Read(const JsonValue& json, auto& object) {
    T checked;
    if (ReadObject(json, checked, true)) RawForm<kMember>::Read(json, object);
  }
  static Json Schema() { return ObjectSchema(T{}); }
};

// A member that has words in this place only: pairs of a word and a value. (Names<E> are for all places.)
template <const auto& kWords, auto kMember>
struct WordForm {
  static constexpr auto kField = kMember;
  template <typename T>
  static void Read(const JsonValue& json, T& object) {
    const auto word = json.String();
    if (!word) return;
    std::vector<std::string_view> known;  // one word for each value
    for (auto at = kWords.begin(); at != kWords.end(); ++at) {
      const auto& [name, value] = *at;
      if (name == *word) {
        object.*kMember = value;
        return;
      }
      if (std::find_if(kWords.begin(), at, [&](const auto& one) { return one.second == at->second; }) == at)
        known.emplace_back(name);
    }
    FailUnknown(json, *word, known);
  }
  template <typename T>
  static Json Write(const T& object) {
    const auto* const at =
        std::ranges::find(kWords, object.*kMember, [](const auto& one) { return one.second; });
    return at == kWords.end() ? Json() : Json(at->first);
  }
  static Json Schema() {
    std::vector<std::string> words;
    for (const auto& [name, value] : kWords) words.emplace_back(name);
    return {{"enum", words}};
  }
};

template <typename T>
struct OptionalOf {
  using Value = T;
};
template <typename T>
struct OptionalOf<std::optional<T>> {
  using Value = T;
};

// By the member's type alone: structs share the code.
template <typename M>
void ReadField(JsonReader& json, const char* key, M& member, const FieldRules& rules, bool close) {
  const auto field = FieldOf(json, key, rules);
  if (!field) return;
  if constexpr (IsRecord<M>) {
    (void)ReadObject(*field, member, close);
  } else {
    auto value = ReadValue<typename OptionalOf<M>::Value>(*field, rules, close);
    if (!value) return;
    if (IsFilled(rules) && IsEmptyText(*value)) field->Fail("must not be empty", rules.hint);
    member = *std::move(value);
  }
}

template <typename T>
class Reader {
 public:
  Reader(T& object, JsonReader& json, bool close) : object_(object), json_(json), close_(close) {}

  template <typename C, typename M>
  void operator()(const char* key, M C::*member, const FieldRules& rules = {}) {
    ReadField(json_, key, object_.*member, rules, close_);
  }

  template <typename List>
  void Group(const char* key, List list) {
    auto object = json_.Object(key);
    if (!object) return;
    Reader<T> group(object_, *object, close_);
    list(group);
    if (close_) object->Close();
  }
  template <typename F>
  void Form(const char* key, F /*form*/, const FieldRules& rules = {}) {
    if (const auto field = FieldOf(json_, key, rules)) F::Read(*field, object_);
  }
  void Foreign(const char* key) { Ignore(json_, key); }
  void Gone(const char* key, const char* hint) {
    if (close_ && json_.Has(key)) json_.Fail(key, "is no longer a setting", hint);
    json_.Ignore(key);
  }

  void Version(std::int64_t version, const char* hint = "") {
    (void)json_.Int("version", version, version);
    if (!json_.Has("version")) json_.Fail("version", "is required", hint);
  }
  template <typename C, typename M>
  void Implied(const char* key, M C::*member, M C::*otherwise, const FieldRules& rules = {}) {
    object_.*member = object_.*otherwise;
    (*this)(key, member, rules);
  }
  template <typename C, typename M>
  void Part(M C::*member) {
    ReadFields(object_.*member, json_, close_, false);
  }
  template <typename C, typename M, typename List>
  void Part(M C::*member, List list) {
    Reader<M> part(object_.*member, json_, close_);
    list(part);
  }
  template <typename Function>
  void Output(const char* key, Function /*function*/, const FieldRules& /*rules*/ = {}) {
    json_.Ignore(key);
  }
  template <typename Function>
  void Column(const char* /*heading*/, Function /*function*/, bool /*wide*/ = false) {}

 private:
  T& object_;
  JsonReader& json_;
  const bool close_;
};

template <typename T>
void ReadFields(T& object, JsonReader& json, bool close, bool whole) {
  const std::size_t errors = json.error_count();
  Reader<T> reader(object, json, close);
  Shape<T>::List(reader);
  if constexpr (HasComplete<T>) Shape<T>::Complete(object);
  const bool is_sound = json.error_count() == errors;
  // Before Check(): a misspelt key says more than a missing one.
  if (close && whole) json.Close();
  if constexpr (HasCheck<T>) {
    const Complain complain([&](const std::string& at, const std::string& why, const std::string& hint) {
      json.FailWithin(at, why, hint);
    });
    if (is_sound) Shape<T>::Check(object, complain);
  }
}

}  // namespace railhead::record
