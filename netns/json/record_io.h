// Writes and reads the records of record.h as JSON.
//
//   const std::string text = RH_TRY(FormatRecord(drain, "drain"));
//   const Drain drain = RH_TRY(ParseRecord<Drain>(text, path));
//
// Included where a record is written or read, and nowhere else: the templates take their time to compile.
// Errors of the reader: as JsonReader has them, with the place ("drains.json: /since: is no time ...").
// FormatRecord: kInvalid with the same words, when the reader would refuse what it writes.
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"

namespace railhead {
namespace record {

using Json = nlohmann::ordered_json;

template <typename T>
concept HasShape = requires(const T& value) {
  sizeof(Shape<T>);
};
// What a Shape may have besides List(), see record.h.
using Complain = std::function<void(const char* key, std::string why)>;
template <typename T>
concept HasKey = requires(const T& value) {
  Shape<T>::Key(value);
};
template <typename T>
concept HasCheck = requires(const T& value, const Complain& complain) {
  Shape<T>::Check(value, complain);
};
template <typename T>
concept HasIsKnown = requires(JsonReader& reader) {
  Shape<T>::IsKnown(reader);
};

template <typename T>
concept HasTextForm = requires(const T& value) {
  TextForm<T>::Write(value);
};

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
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
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;
// Maps, and vectors of pairs: objects of which every key is a value.
template <typename T>
inline constexpr bool kIsDictionary = false;
template <typename V>
inline constexpr bool kIsDictionary<std::map<std::string, V>> = true;
template <typename V>
inline constexpr bool kIsDictionary<std::vector<std::pair<std::string, V>>> =
    !HasShape<std::pair<std::string, V>>;

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

// Where a value is, for messages: a chain of keys on the stack.
struct Place {
  const Place* of = nullptr;
  std::string_view key;
  std::size_t index = 0;  // without a key

  [[nodiscard]] std::string Pointer() const {
    if (of == nullptr) return "";
    return of->Pointer() + "/" + (key.empty() ? std::to_string(index) : std::string(key));
  }
};

// What the reader would refuse: the first of it.
struct Refusal {
  std::string pointer;
  std::string why;

  void Add(const Place& place, std::string reason) {
    if (!why.empty()) return;
    pointer = place.Pointer();
    why = std::move(reason);
  }
};

template <typename T>
Json WriteRecord(const T& value, const Place& place, Refusal& refusal);

template <std::integral T>
Json WriteInt(T value, std::int64_t min, std::int64_t max, const Place& place, Refusal& refusal) {
  if (std::cmp_less(value, min) || std::cmp_greater(value, max)) {
    refusal.Add(place, std::to_string(value) + " is out of range " + std::to_string(min) + ".." +
                           std::to_string(max));
  }
  return value;
}

inline Json WriteText(std::string text, const Place& place, Refusal& refusal) {
  if (text.find('\0') != std::string::npos) refusal.Add(place, "holds a NUL character");
  return text;
}

// Names of interfaces and the like are any bytes: those that are no UTF-8 are replaced.
inline std::string Dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// As the file will have it.
inline std::string Readable(const std::string& text) {
  if (std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; })) return text;
  return Json::parse(Dump(text)).get<std::string>();
}

inline Json WriteTime(WallTime time, TimeForm form, const Place& place, Refusal& refusal) {
  if (form == TimeForm::kText) return FormatTime(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  return WriteInt(seconds, 0, kLastSecond, place, refusal);
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
                  "is no number from " + std::to_string(rules.min) + " to " + std::to_string(rules.max));
    return value;
  } else if constexpr (std::same_as<T, std::string>) {
    return WriteText(value, place, refusal);
  } else if constexpr (kIsDuration<T>) {
    return WriteInt(value.count(), rules.min, rules.max, place, refusal);
  } else if constexpr (std::same_as<T, WallTime>) {
    return WriteTime(value, rules.time, place, refusal);
  } else if constexpr (Named<T>) {
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
  } else {
    static_assert(HasShape<T>, "a member's type has no form in JSON (record.h)");
    return WriteRecord(value, place, refusal);
  }
}

inline bool IsNeeded(const FieldRules& rules) {
  return rules.need == Need::kRequired || rules.need == Need::kPresent;
}

template <typename T>
bool IsEmptyText(const T& value) {
  if constexpr (std::same_as<T, std::string>) return value.empty();
  return false;
}

template <typename T>
class Writer {
 public:
  Writer(const T& object, Json& json, const Place& place, Refusal& refusal)
      : object_(object), json_(json), place_(place), refusal_(refusal) {}

  template <typename C, typename M>
  void operator()(const char* key, M C::*member, const FieldRules& rules = {}) {
    const M& value = object_.*member;
    const Place at{&place_, key};
    if (rules.need == Need::kRequired && IsEmptyText(value)) refusal_.Add(at, "must not be empty");
    if constexpr (kIsOptional<M>) {
      if (value) {
        json_[key] = WriteValue(*value, rules, at, refusal_);
      } else if (IsNeeded(rules)) {
        refusal_.Add(at, "is required");
      }
    } else {
      if (rules.need == Need::kSparse && value == T{}.*member) return;
      json_[key] = WriteValue(value, rules, at, refusal_);
    }
  }

  void Version(std::int64_t version, const char* /*hint*/ = "") { json_["version"] = version; }
  template <typename C, typename M>
  void Implied(const char* key, M C::*member, M C::*otherwise, const FieldRules& rules = {}) {
    if (object_.*member != object_.*otherwise) (*this)(key, member, rules);
  }
  template <typename C, typename M>
  void Part(M C::*member) {
    Writer<M> part(object_.*member, json_, place_, refusal_);
    Shape<M>::List(part);
  }
  template <typename Function>
  void Shown(const char* key, Function function) {
    auto value = function(object_);
    if constexpr (kIsOptional<decltype(value)>) {
      if (value) json_[key] = *value;
    } else {
      json_[key] = value;
    }
  }

 private:
  const T& object_;
  Json& json_;
  const Place& place_;
  Refusal& refusal_;
};

template <typename T>
Json WriteRecord(const T& value, const Place& place, Refusal& refusal) {
  Json json = Json::object();
  Writer<T> writer(value, json, place, refusal);
  Shape<T>::List(writer);
  if constexpr (HasCheck<T>) {
    const Complain complain = [&](const char* key, std::string why) {
      refusal.Add({&place, key}, std::move(why));
    };
    Shape<T>::Check(value, complain);
  }
  return json;
}

template <typename T>
T ReadRecord(JsonReader& reader, bool close);

template <typename E>
std::optional<E> ReadNamed(const JsonValue& json) {
  const auto word = json.String();
  if (!word) return std::nullopt;
  const auto value = FromWord<E>(*word);
  if (!value) {
    std::vector<std::string> known;
    known.reserve(Names<E>::kAll.size());
    for (const auto& [name, unused] : Names<E>::kAll) known.emplace_back(name);
    json.Fail("'" + *word + "' is not known", "known here: " + Join(known, ", "));
  }
  return value;
}

inline std::optional<bool> ReadWord(const JsonValue& json, const FieldRules& rules) {
  const auto word = json.String();
  if (!word) return std::nullopt;
  if (*word == rules.yes) return true;
  if (*word == rules.no) return false;
  json.Fail("'" + *word + "' is not known", "known here: " + std::string(rules.no) + ", " + rules.yes);
  return std::nullopt;
}

inline std::optional<WallTime> ReadTime(const JsonValue& json, TimeForm form) {
  if (form == TimeForm::kSeconds) {
    const auto seconds = json.Int(0, kLastSecond);
    return seconds ? std::optional(WallTime(std::chrono::seconds(*seconds))) : std::nullopt;
  }
  const auto text = json.String();
  if (!text) return std::nullopt;
  const auto time = ParseTime(*text);
  if (!time) json.Fail("'" + *text + "' is no time of the form 2026-03-01T12:00:00Z");
  return time;
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

}  // namespace record

enum class UnknownFields : std::uint8_t {
  kPassOver,  // of what a newer version may have written
  kRefuse,    // of what people write
};

// A record, or a list of them, as a part of other JSON. What the reader would refuse is written all the same.
template <typename T>
nlohmann::ordered_json ToJson(const T& value) {
  record::Refusal refusal;
  return record::WriteValue(value, {}, {}, refusal);
}

// With a newline. `what` names the record in errors; `indent`: as nlohmann::json::dump has it.
template <typename T>
Result<std::string> FormatRecord(const T& value, const std::string& what, int indent = -1) {
  record::Refusal refusal;
  const nlohmann::ordered_json json = record::WriteRecord(value, {}, refusal);
  if (!refusal.why.empty())
    return Fail(ErrorCode::kInvalid, what + ": " + refusal.pointer + ": " + refusal.why);
  return record::Dump(json, indent) + "\n";
}

// As a part of other JSON: what is wrong sticks in the reader.
template <typename T>
T ReadRecord(JsonReader& reader, UnknownFields unknown = UnknownFields::kPassOver) {
  return record::ReadRecord<T>(reader, unknown == UnknownFields::kRefuse);
}

template <typename T>
Result<T> ParseRecord(std::string_view text, const std::string& what,
                      UnknownFields unknown = UnknownFields::kPassOver,
                      std::size_t max_size = JsonDocument::kMaxSize) {
  const auto document = RH_TRY(JsonDocument::Parse(text, what, max_size));
  JsonReader reader = document.Root();
  T value = ReadRecord<T>(reader, unknown);
  RH_TRY(reader.status());
  return value;
}

// A file of one record below the root. Read: nullopt: there is none.
template <typename T>
struct StateFile {
  const char* path;
  const char* what;  // for errors of writing: "saving health"
  Sync sync = Sync::kVolatile;
  std::size_t max_size = kMaxFileSize;

  [[nodiscard]] std::string PathIn(const Root& root) const { return root.Path(path); }

  [[nodiscard]] Result<std::optional<T>> Read(const Root& root) const {
    const std::string file = PathIn(root);
    const auto text = RH_TRY(ReadFile(file, max_size));
    if (!text) return std::nullopt;
    return RH_TRY(ParseRecord<T>(*text, file, UnknownFields::kPassOver, max_size));
  }

  // Everybody may read it.
  [[nodiscard]] Result<void> Write(const Root& root, const T& value) const {
    const std::string text = RH_TRY_WRAP(FormatRecord(value, PathIn(root)), what);
    RH_TRY_WRAP(MakeStateFolderOf(root, PathIn(root)), what);
    RH_TRY_WRAP(WriteAtomic(PathIn(root), text, sync, 0644), what);
    return {};
  }
};

}  // namespace railhead
