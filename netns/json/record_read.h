// Reads a record from JSON. What is wrong sticks in the JsonReader, with its place.
//
// `close`: fields that are not known are wrong, too.
// Threads: as JsonReader.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "netns/json/record_forms.h"

namespace railhead::record {

template <typename T>
T ReadRecord(JsonReader& reader, bool close);

void FailUnknown(const JsonValue& json, const std::string& word, const std::vector<std::string_view>& known);
std::optional<bool> ReadWord(const JsonValue& json, const FieldRules& rules);
std::optional<WallTime> ReadTime(const JsonValue& json, TimeForm form);

template <typename E>
std::optional<E> ReadNamed(const JsonValue& json) {
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
std::optional<T> ReadText(const JsonValue& json) {
  const auto text = json.String();
  if (!text) return std::nullopt;
  auto value = TextForm<T>::Read(*text);
  if (value) return *std::move(value);
  if constexpr (requires { value.error(); }) {
    json.Fail(value.error().message);
  } else {
    json.Fail("'" + *text + "' " + TextForm<T>::kWrong);
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

template <typename T>
std::optional<T> ReadList(const JsonValue& json, const FieldRules& rules, bool close) {
  using Element = typename T::value_type;
  constexpr bool kOfObjects = HasShape<Element>;
  const auto items = json.List(kOfObjects                      ? "objects"
                               : std::is_arithmetic_v<Element> ? "numbers"
                                                               : "strings");
  if (!items) return std::nullopt;
  T list;
  std::set<std::string> keys;
  for (const JsonValue& item : *items) {
    if constexpr (requires(JsonReader & reader) { Shape<Element>::IsKnown(reader); }) {
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
  } else if constexpr (Named<T>) {
    return ReadNamed<T>(json);
  } else if constexpr (kIsDuration<T> || std::is_enum_v<T>) {
    return ReadNumber<T>(json, rules.min, rules.max);
  } else if constexpr (HasTextForm<T>) {
    return ReadText<T>(json);
  } else if constexpr (kIsDictionary<T>) {
    return ReadDictionary<T>(json, rules, close);
  } else if constexpr (kIsList<T>) {
    return ReadList<T>(json, rules, close);
  } else {
    static_assert(HasShape<T>, "a member's type has no form in JSON (record.h)");
    auto object = json.Object();
    return object ? std::optional<T>(ReadRecord<T>(*object, close)) : std::nullopt;
  }
}

template <typename T>
struct OptionalOf {
  using Value = T;
};
template <typename T>
struct OptionalOf<std::optional<T>> {
  using Value = T;
};

template <typename T>
class Reader {
 public:
  Reader(T& object, JsonReader& json, bool close) : object_(object), json_(json), close_(close) {}

  template <typename C, typename M>
  void operator()(const char* key, M C::*member, const FieldRules& rules = {}) {
    const JsonValue json = json_.At(key);
    auto value = ReadValue<typename OptionalOf<M>::Value>(json, rules, close_);
    if (IsNeeded(rules) && !json.is_there()) json_.Fail(key, "is required");
    if (rules.need == Need::kRequired && value && IsEmptyText(*value)) json_.Fail(key, "must not be empty");
    if (value) object_.*member = *std::move(value);
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
    Reader<M> part(object_.*member, json_, close_);
    Shape<M>::List(part);
  }
  template <typename Function>
  void Shown(const char* key, Function /*function*/) {
    json_.Ignore(key);
  }

 private:
  T& object_;
  JsonReader& json_;
  const bool close_;
};

template <typename T>
T ReadRecord(JsonReader& json, bool close) {
  T object;
  Reader<T> reader(object, json, close);
  Shape<T>::List(reader);
  if (close) json.Close();
  if constexpr (HasCheck<T>) {
    const Complain complain = [&](const char* key, const std::string& why) { json.Fail(key, why); };
    if (json.status()) Shape<T>::Check(object, complain);
  }
  return object;
}

}  // namespace railhead::record
