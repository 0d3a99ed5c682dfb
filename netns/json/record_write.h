// Writes a record as JSON, and notes what the reader would refuse (record_read.h).
//
// Threads: pure functions.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "netns/json/record_forms.h"

namespace railhead::record {

// Where a value is, for messages: a chain of keys on the stack.
struct Place {
  const Place* of = nullptr;
  std::string_view key;
  std::size_t index = 0;  // without a key

  // As JsonReader has it: a JSON pointer.
  [[nodiscard]] std::string Pointer() const;
};

// The first fault that the reader would refuse.
struct Refusal {
  std::string pointer;
  std::string why;

  void Add(const Place& place, std::string reason);
  // At a JSON pointer within it, without its first slash.
  void AddWithin(const Place& place, const std::string& within, std::string reason);
};

std::string OutOfRange(const std::string& value, std::int64_t min, std::int64_t max);
Json WriteText(std::string text, const Place& place, Refusal& refusal);
Json WriteTime(WallTime time, TimeForm form, const Place& place, Refusal& refusal);
// Names of interfaces and the like are any bytes: invalid UTF-8 is replaced.
std::string Dump(const Json& json, int indent = -1);
// A text as it will be read.
std::string Readable(const std::string& text);

template <typename T>
Json WriteRecord(const T& value, const Place& place, Refusal& refusal);

template <std::integral T>
Json WriteInt(T value, std::int64_t min, std::int64_t max, const Place& place, Refusal& refusal) {
  if (std::cmp_less(value, min) || std::cmp_greater(value, max)) {
    refusal.Add(place, OutOfRange(std::to_string(value), min, max));
  }
  return value;
}

template <typename T>
Json WriteValue(const T& value, const FieldRules& rules, const Place& place, Refusal& refusal) {
  if constexpr (std::same_as<T, bool>) {
    if (rules.no != nullptr) return value ? rules.yes : rules.no;
    return value;
  } else if constexpr (std::integral<T>) {
    return WriteInt(value, SmallestOf<T>(rules), LargestOf<T>(rules), place, refusal);
  } else if constexpr (std::floating_point<T>) {
    if (!(value >= static_cast<T>(rules.min) && value <= static_cast<T>(rules.max)))
      refusal.Add(place,
                  "is not a number from " + std::to_string(rules.min) + " to " + std::to_string(rules.max));
    return value;
  } else if constexpr (std::convertible_to<T, std::string_view>) {
    return WriteText(std::string(value), place, refusal);
  } else if constexpr (kIsDuration<T>) {
    return WriteInt(value.count(), rules.min, rules.max, place, refusal);
  } else if constexpr (std::same_as<T, WallTime>) {
    return WriteTime(value, rules.time, place, refusal);
  } else if constexpr (HasNames<T>) {
    if (!FromWord<T>(WordOf(value))) refusal.Add(place, "has no name");
    return WordOf(value);
  } else if constexpr (std::is_enum_v<T>) {
    return WriteInt(static_cast<std::int64_t>(value), rules.min, rules.max, place, refusal);
  } else if constexpr (HasTextForm<T>) {
    std::string text = TextForm<T>::Write(value);
    if (!TextForm<T>::Read(text)) refusal.Add(place, "'" + text + "' could not be read again");
    return WriteText(std::move(text), place, refusal);
  } else if constexpr (kIsDictionary<T>) {
    Json object = Json::object();
    for (const auto& [key, one] : value) {
      const Place at{&place, key};
      const Json name = WriteText(Readable(key), at, refusal);
      const bool is_new = object.emplace(name.get<std::string>(), WriteValue(one, rules, at, refusal)).second;
      if (!is_new) refusal.Add(at, "is there twice");
    }
    return object;
  } else if constexpr (kIsList<T>) {
    if (rules.filled && value.empty()) refusal.Add(place, "must not be empty");
    if (rules.or_one && value.size() == 1) return WriteValue(*value.begin(), rules, place, refusal);
    Json list = Json::array();
    std::set<std::string> keys;
    for (const auto& one : value) {
      const Place at{&place, "", list.size()};
      if constexpr (HasKey<typename T::value_type>) {
        const std::string key = Shape<typename T::value_type>::Key(one);
        if (!keys.insert(key).second) refusal.Add(at, "'" + key + "' is there twice");
      }
      list.push_back(WriteValue(one, rules, at, refusal));
    }
    return list;
  } else if constexpr (!std::same_as<T, TypeIn<T>>) {
    return WriteValue(*ValueIn(value), rules, place, refusal);
  } else {
    static_assert(HasShape<T>, "a member's type has no form in JSON (record.h)");
    return WriteRecord(value, place, refusal);
  }
}

// By the member's type alone: structs share the code.
template <typename M>
void WriteField(Json& json, const char* key, const M& value, const FieldRules& rules, const Place& place,
                Refusal& refusal) {
  const Place at{&place, key};
  if (rules.need == Need::kRequired && IsEmptyText(value)) refusal.Add(at, "must not be empty");
  if (rules.filled && !IsNeeded(rules) && IsEmptyText(value)) return;
  if constexpr (kIsOptional<M>) {
    if (value) {
      json[key] = WriteValue(*value, rules, at, refusal);
    } else if (IsNeeded(rules)) {
      refusal.Add(at, "is required");
    } else if (rules.need == Need::kNull) {
      json[key] = nullptr;
    }
  } else {
    if constexpr (kIsList<M> || kIsDictionary<M>) {
      if (rules.filled && value.empty() && !IsNeeded(rules)) return;
    }
    json[key] = WriteValue(value, rules, at, refusal);
  }
}

// A type without comparison never counts as its default.
template <typename M>
bool IsDefault(const M& value, const M& usual) {
  if constexpr (kIsDictionary<M> || kIsList<M>) {
    return value.empty() && usual.empty();
  } else if constexpr (std::equality_comparable<M>) {
    return value == usual;
  } else {
    return false;
  }
}

template <typename T>
void WriteFields(const T& value, Json& json, const Place& place, Refusal& refusal);

template <typename T>
class Writer {
 public:
  Writer(const T& object, Json& json, const Place& place, Refusal& refusal)
      : object_(object), json_(json), place_(place), refusal_(refusal) {}

  template <typename C, typename M>
  void operator()(const char* key, M C::*member, const FieldRules& rules = {}) {
    if constexpr (!kIsOptional<M>) {
      if (rules.need == Need::kSparse && IsDefault<M>(object_.*member, T{}.*member)) return;
    }
    WriteField(json_, key, object_.*member, rules, place_, refusal_);
  }

  void Version(std::int64_t version, const char* /*hint*/ = "") { json_["version"] = version; }
  template <typename C, typename M>
  void Implied(const char* key, M C::*member, M C::*otherwise, const FieldRules& rules = {}) {
    if (object_.*member != object_.*otherwise) (*this)(key, member, rules);
  }
  template <typename C, typename M>
  void Part(M C::*member) {
    const auto* const value = ValueIn(object_.*member);
    if (value != nullptr) WriteFields(*value, json_, place_, refusal_);
  }
  template <typename C, typename M, typename List>
  void Part(M C::*member, List list) {
    const auto* const value = ValueIn(object_.*member);
    if (value == nullptr) return;
    Writer<TypeIn<M>> part(*value, json_, place_, refusal_);
    list(part);
  }
  template <typename List>
  void Group(const char* key, List list) {
    Json object = Json::object();
    const Place at{&place_, key};
    Writer<T> group(object_, object, at, refusal_);
    list(group);
    if (!object.empty()) json_[key] = std::move(object);
  }
  template <typename F>
  void Form(const char* key, F /*form*/, const FieldRules& rules = {}) {
    Json value = F::Write(object_);
    if (IsNeeded(rules) && value.is_null()) refusal_.Add({&place_, key}, "is required");
    if (value.is_discarded() || (value.is_null() && !requires { F::kWritesNull; })) return;
    json_[key] = std::move(value);
  }
  void Foreign(const char* /*key*/) {}
  void Gone(const char* /*key*/, const char* /*hint*/) {}
  template <typename Function>
  void Output(const char* key, Function function, const FieldRules& rules = {}) {
    const auto& value = std::invoke(function, object_);
    using Value = std::remove_cvref_t<decltype(value)>;
    if (rules.need == Need::kSparse && IsDefault<Value>(value, {})) return;
    WriteField(json_, key, value, rules, place_, refusal_);
  }
  template <typename Function>
  void Column(const char* /*heading*/, Function /*function*/, bool /*wide*/ = false) {}

 private:
  const T& object_;
  Json& json_;
  const Place& place_;
  Refusal& refusal_;
};

template <typename T>
void WriteFields(const T& value, Json& json, const Place& place, Refusal& refusal) {
  Writer<T> writer(value, json, place, refusal);
  Shape<T>::List(writer);
  if constexpr (HasCheck<T>) {
    const Complain complain([&](const std::string& at, const std::string& why, const std::string& /*hint*/) {
      refusal.AddWithin(place, at, why);
    });
    Shape<T>::Check(value, complain);
  }
}

template <typename T>
Json WriteRecord(const T& value, const Place& place, Refusal& refusal) {
  Json json = Json::object();
  WriteFields(value, json, place, refusal);
  return json;
}

}  // namespace railhead::record
