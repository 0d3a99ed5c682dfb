// Which form in JSON a member of a record has, by its type: for record_write.h and record_read.h.
//
// Threads: pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "netns/json/json_reader.h"
#include "netns/json/record.h"

namespace railhead::record {

using Json = nlohmann::ordered_json;

template <typename T>
concept HasShape = requires {
  sizeof(Shape<T>);
};

// Says that a record is wrong at `at`: a key, or PointerOf() of several.
class Complain {
 public:
  using Sink = std::function<void(const std::string& at, const std::string& why, const std::string& hint)>;
  explicit Complain(Sink sink) : sink_(std::move(sink)) {}
  void operator()(const std::string& at, const std::string& why, const std::string& hint = {}) const {
    sink_(at, why, hint);
  }

 private:
  Sink sink_;
};

// What a Shape may have besides List(), see record.h.
template <typename T>
concept HasKey = requires(const T& value) {
  Shape<T>::Key(value);
};
template <typename T>
concept HasCheck = requires(const T& value, const Complain& complain) {
  Shape<T>::Check(value, complain);
};
template <typename T>
concept HasComplete = requires(T& value) {
  Shape<T>::Complete(value);
};
template <typename T>
concept HasIsKnown = requires(JsonReader& reader) {
  Shape<T>::IsKnown(reader);
};

template <typename T>
concept HasSwitch = requires(T& value) {
  Shape<T>::Switch(value, true);
};

template <typename T>
concept HasTextForm = requires {
  sizeof(TextForm<T>);
};

// Its form is an object with the fields of its Shape.
template <typename T>
concept IsRecord = HasShape<T> && !HasTextForm<T>;

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
// The value of an optional or a pointer, nullptr if it is empty; else the value itself.
template <typename T>
const T* ValueIn(const T& value) {
  return &value;
}
template <typename T>
const T* ValueIn(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}
template <typename T>
const T* ValueIn(const T* const& value) {
  return value;
}
template <typename T>
const T* ValueIn(const std::shared_ptr<const T>& value) {
  return value.get();
}
template <typename T>
using TypeIn = std::remove_cvref_t<decltype(*ValueIn(std::declval<const T&>()))>;

template <typename T>
inline constexpr bool kIsDuration = false;
template <typename R, typename P>
inline constexpr bool kIsDuration<std::chrono::duration<R, P>> = true;
template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsList<std::set<T>> = true;
// Maps, and vectors of pairs: objects of which every key is a value.
template <typename T>
inline constexpr bool kIsDictionary = false;
template <typename V>
inline constexpr bool kIsDictionary<std::map<std::string, V>> = true;
template <typename V>
inline constexpr bool kIsDictionary<std::vector<std::pair<std::string, V>>> = true;

using WallTime = std::chrono::system_clock::time_point;
inline constexpr std::int64_t kLastSecond = 253'402'300'799;  // of year 9999

template <typename T>
std::int64_t SmallestOf(const FieldRules& rules) {
  if constexpr (std::is_unsigned_v<T>) return std::max<std::int64_t>(rules.min, 0);
  return std::max<std::int64_t>(rules.min, std::numeric_limits<T>::min());
}
template <typename T>
std::int64_t LargestOf(const FieldRules& rules) {
  if constexpr (sizeof(T) < sizeof(std::int64_t))
    return std::min<std::int64_t>(rules.max, std::numeric_limits<T>::max());
  return rules.max;
}

inline bool IsNeeded(const FieldRules& rules) {
  return rules.need == Need::kRequired || rules.need == Need::kPresent;
}

// A text that must not be empty.
inline bool IsFilled(const FieldRules& rules) {
  return rules.need == Need::kRequired || rules.filled;
}

template <typename T>
bool IsEmptyText(const T& value) {
  if constexpr (std::same_as<T, std::string>) return value.empty();
  return false;
}

}  // namespace railhead::record

namespace railhead {

// A JSON pointer of keys and indices, without the first slash: "rails/0/name".
template <typename First, typename... Others>
std::string PointerOf(const First& first, const Others&... others) {
  std::string pointer;
  if constexpr (std::integral<First>) {
    pointer = std::to_string(first);
  } else {
    pointer = EscapePointer(first);
  }
  if constexpr (sizeof...(others) > 0) pointer += "/" + PointerOf(others...);
  return pointer;
}

}  // namespace railhead
