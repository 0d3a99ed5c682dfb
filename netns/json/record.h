// Record: one list of fields per struct. Its JSON is written and read from that list (record_io.h), and so is
// the table of several records (record_table.h).
//
//   struct Drain { std::string device; std::string reason; std::chrono::system_clock::time_point since; };
//   template <>
//   struct Shape<Drain> {
//     static void List(auto& f) {
//       f("device", &Drain::device, kRequiredField);
//       f("reason", &Drain::reason, kSparseField);
//       f("since", &Drain::since, kRequiredField);
//     }
//   };
//
// So a writer never writes what its reader refuses, and a field is one line. A struct that is ours alone, as
// a report, may have its list itself: a static List(auto& f).
//
// Members are: bool, integers, double, std::string, durations (their count), time points (TimeForm), enums
// (Names; without Names their number). Also types with a TextForm, structs with a Shape, and optional,
// vector, set and map<std::string, ..> of these. A vector of pairs of a string and a value is an object, too;
// it is written in its own order. A member that is only written may also be a string_view, or a pointer to
// one of these.
//
// Besides fields a Shape lists
//   f.Group("addresses", [](auto& g) { g("policy", &Fabric::address_policy); })
//                                   fields of this struct in an object of their own
//   f.Form("pf", PfForm{})          a field that people write in several ways. PfForm has static functions:
//                                   Read(const JsonValue&, T&); Write(const T&), null to leave it out;
//                                   Schema(). With a constant kWritesNull, null is a value, and only
//                                   Json::value_t::discarded is left out
//   f.Foreign("dns")                a key of another program: the reader ignores it
//   f.Foreign("cni.dev/*")          all keys that begin so
//   f.Gone("store", hint)           a key of earlier versions. A reader of what people write refuses it with
//                                   the hint, which names the way out; other readers ignore it
//   f.Version(1, hint)              the format's number; the reader refuses another one, or none
//   f.Part(&Entry::key)             fields of a member that has no object of its own
//   f.Part(&Config::tuning, [](auto& part) {...})
//                                   the same, of a member that has another name elsewhere. An optional or
//                                   a pointer is only written, and only where it has a value
//   f.Implied("answered", &Peer::answered, &Peer::sent)
//                                   absent: it equals the other member. Written only if it differs
//   f.Output("switch", function)     written for people and programs. The reader ignores it. nullopt: not
//                                   written. The function may be a member
//   f.Column("CABLING", function)   only in tables; with kWide after it only in wide ones
// and it may have
//   static std::string Key(const T&)
//                                   of lists: two elements with one key are refused
//   static void Complete(T&)        sets what follows from other fields, after all are read
//   static void Check(const T&, const record::Complain& complain)
//                                   says which fields contradict each other: complain(key, why, hint). For a
//                                   field of a member the key is PointerOf("rails", 0, "name"); "": the whole
//   static bool IsKnown(JsonReader&)
//                                   of lists: the reader ignores elements that it does not know
//   static void Switch(T&, bool)    the object may be true or false instead: sets what they mean
//
// A struct in a struct is read over the member's present value: absent fields keep the defaults of that
// place.
//
// Threads: pure descriptions.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead {

enum class Need : std::uint8_t {
  kOptional,  // absent: the member's default. Always written, but for an optional without a value
  kRequired,  // has to be there; a text must not be empty
  kPresent,   // has to be there; a text may be empty
  kSparse,    // as kOptional, and not written while it is the default
  kNull,      // as kOptional, and an optional without a value is written as null
};

enum class TimeForm : std::uint8_t {
  kText,     // RFC 3339 in UTC, to the second
  kSeconds,  // since the epoch
};

struct FieldRules {
  Need need = Need::kOptional;
  // Of numbers, also in lists.
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  TimeForm time = TimeForm::kText;
  // Words for a bool; nullptr: false and true.
  const char* no = nullptr;
  const char* yes = nullptr;
  // Of lists and texts: not empty, if it is there.
  bool filled = false;
  // Of lists: one element may stand by itself.
  bool or_one = false;
  // An empty text, which sriov-cni's users write, is as if it were absent.
  bool blank = false;
  // The hint for a refused or missing value: what to write.
  const char* hint = "";
  // The heading of its column in tables; nullptr: it has none.
  const char* column = nullptr;
  // The column is in wide tables only.
  bool wide = false;
};
inline constexpr FieldRules kRequiredField{.need = Need::kRequired};
inline constexpr FieldRules kSparseField{.need = Need::kSparse};
inline constexpr FieldRules kPresentField{.need = Need::kPresent};
inline constexpr FieldRules kNullField{.need = Need::kNull};
inline constexpr FieldRules kEpochSeconds{.time = TimeForm::kSeconds};
inline constexpr bool kWide = true;

// The list of fields of T.
template <typename T>
struct Shape;

// Of a struct that has its list itself.
struct AnyVisitor {};
template <typename T>
concept ListsItself = requires(AnyVisitor& f) {
  T::List(f);
};
template <ListsItself T>
struct Shape<T> {
  static void List(auto& f) { T::List(f); }
};

// The words for an enum: kAll, an array of pairs (word, enumerator).
template <typename E>
struct Names;

template <typename E>
concept HasNames = requires {
  Names<E>::kAll;
};

template <HasNames E>
constexpr std::string_view WordOf(E wanted) {
  for (const auto& [name, value] : Names<E>::kAll) {
    if (value == wanted) return name;
  }
  return "unknown";
}

template <HasNames E>
constexpr std::optional<E> FromWord(std::string_view name) {
  for (const auto& [known, value] : Names<E>::kAll) {
    if (name == known) return value;
  }
  return std::nullopt;
}

// A value that is a text in JSON. Read(text) gives a Result, or an optional; then kWrong is the message for a
// text without a value. A type that is only read needs no Write(value).
template <typename T>
struct TextForm;

template <typename T>
struct ParsedText {
  static std::string Write(const T& value) { return value.ToString(); }
  static std::optional<T> Read(std::string_view text) { return T::Parse(text); }
};

template <>
struct TextForm<MacAddress> : ParsedText<MacAddress> {
  static constexpr const char* kWrong = "is not a MAC address";
};
template <>
struct TextForm<IpAddress> : ParsedText<IpAddress> {
  static constexpr const char* kWrong = "is not an IP address";
};
template <>
struct TextForm<IpPrefix> : ParsedText<IpPrefix> {
  static constexpr const char* kWrong = "is not an address with prefix length";
};
template <>
struct TextForm<IpRange> {
  static std::string Write(const IpRange& range) { return range.ToString(); }
  static Result<IpRange> Read(std::string_view text) { return IpRange::Parse(text); }
};

// As programs get an error: it is not read again.
template <>
struct Shape<Error> {
  static void List(auto& f) {
    f.Output("code", [](const Error& error) { return NameOf(error.code); });
    f("message", &Error::message);
    f("hint", &Error::hint, kSparseField);
  }
};

}  // namespace railhead
