// JsonReader: strict, typed reading of JSON with errors that say where.
//
//   auto document = RH_TRY(JsonDocument::Parse(text, "fabric.json"));
//   JsonReader reader = document.Root();
//   config.name = reader.RequiredString("name");
//   config.vlan = reader.Int("vlan", 0, 4094);
//   for (JsonReader& rail : reader.Objects("rails")) { ...; rail.Close(); }
//   reader.Close();                       // unknown keys are errors
//   RH_TRY(reader.status());
//
// nlohmann::json is lenient: duplicate keys keep the last, -1 becomes 4294967295 and 9000.7 becomes 9000.
// Here duplicates, wrong types and values out of range are errors. An error carries the JSON pointer
// ("/rails/0/vlan: 4095 is out of range 0..4094"), and for an unknown key the nearest known one. The first
// error sticks, and all readers of one document share it. So a caller reads everything and asks once. A
// program that reports all faults of a file gets all errors. A null counts as absent.
//
// Ownership: readers point into their JsonDocument, which must outlive them.
// Threads: one document, one thread.
// Errors: kMalformed when the text is not JSON, kInvalid for everything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

class JsonReader;
class JsonValue;

class JsonDocument {
 public:
  static constexpr std::size_t kMaxSize = std::size_t{1} << 20;
  static constexpr int kMaxDepth = 32;

  // `what` names the text in messages. `pointer`: its place in `what`, if it is a part ("/addresses/index").
  static Result<JsonDocument> Parse(std::string_view text, std::string what, std::size_t max_size = kMaxSize,
                                    std::string pointer = {});

  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  // The root must be an object; otherwise the reader carries that error.
  [[nodiscard]] JsonReader Root() const;
  // The root, of whatever type; null is there, too.
  [[nodiscard]] JsonValue Value() const;
  [[nodiscard]] const nlohmann::json& json() const;

  // The first error of all readers.
  [[nodiscard]] Result<void> status() const;
  // All errors, one for each place. An error of an object that follows from an error within it is omitted,
  // and vice versa.
  [[nodiscard]] std::vector<Error> errors() const;

 private:
  struct State;
  explicit JsonDocument(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
  friend class JsonReader;
  friend class JsonValue;
};

// One value of an object or a list. Absent (or null): nullopt. Wrong: nullopt, and the error sticks.
class JsonValue {
 public:
  [[nodiscard]] bool is_there() const { return value_ != nullptr; }
  // The raw value, for a field with several forms; nullptr: absent.
  [[nodiscard]] const nlohmann::json* raw() const { return value_; }

  [[nodiscard]] std::optional<std::string> String() const;
  [[nodiscard]] std::optional<std::int64_t> Int(std::int64_t min, std::int64_t max) const;
  [[nodiscard]] std::optional<double> Number(double min, double max) const;
  [[nodiscard]] std::optional<bool> Bool() const;
  [[nodiscard]] std::optional<JsonReader> Object() const;
  // `of`: what the list consists of, for the message ("strings").
  [[nodiscard]] std::optional<std::vector<JsonValue>> List(std::string_view of) const;
  // Records an error at this value.
  void Fail(const std::string& why, std::string hint = {}) const;
  // The same at a JSON pointer within it, without its first slash; "": at itself.
  void FailWithin(const std::string& pointer, const std::string& why, std::string hint = {}) const;
  // `wanted`: with an article.
  void WrongType(std::string_view wanted) const;

 private:
  friend class JsonDocument;
  friend class JsonReader;
  JsonValue(std::shared_ptr<JsonDocument::State> state, const nlohmann::json* value, std::string pointer);

  std::shared_ptr<JsonDocument::State> state_;
  const nlohmann::json* value_;  // or nullptr
  std::string pointer_;
};

class JsonReader {
 public:
  // The value of `key`, of whatever type.
  JsonValue At(const std::string& key);
  // Absent (or null): nullopt. Wrong: nullopt and the error sticks.
  std::optional<std::string> String(const std::string& key);
  std::optional<std::int64_t> Int(const std::string& key, std::int64_t min, std::int64_t max);
  std::optional<bool> Bool(const std::string& key);
  std::optional<std::vector<std::string>> Strings(const std::string& key);
  std::optional<JsonReader> Object(const std::string& key);
  // Absent: empty.
  std::vector<JsonReader> Objects(const std::string& key);
  // Any value, for a field with several forms or one that is passed on.
  const nlohmann::json* Raw(const std::string& key);

  // Absent is an error.
  std::string RequiredString(const std::string& key);

  [[nodiscard]] bool Has(const std::string& key) const;
  // All keys of this object, in their order.
  [[nodiscard]] std::vector<std::string> Keys() const;
  // Known but not used here.
  void Ignore(const std::string& key);
  // Records an error at this object's `key` ("" for the object itself).
  void Fail(const std::string& key, const std::string& why, std::string hint = {});
  // The same at a JSON pointer within this object, without its first slash: "rails/0/name"; "": at itself.
  void FailWithin(const std::string& pointer, const std::string& why, std::string hint = {});
  // Every key that was neither read nor ignored is an error.
  void Close();

  // Of the whole document, as JsonDocument has them.
  [[nodiscard]] Result<void> status() const;
  [[nodiscard]] std::vector<Error> errors() const;
  [[nodiscard]] std::size_t error_count() const;
  [[nodiscard]] const std::string& pointer() const { return pointer_; }

 private:
  friend class JsonDocument;
  friend class JsonValue;
  JsonReader(std::shared_ptr<JsonDocument::State> state, const nlohmann::json* value, std::string pointer);
  const nlohmann::json* Find(const std::string& key);

  std::shared_ptr<JsonDocument::State> state_;
  const nlohmann::json* value_;  // an object, or nullptr
  std::string pointer_;
  std::vector<std::string> known_;
};

// A key as a part of a JSON pointer (RFC 6901).
std::string EscapePointer(std::string_view key);

}  // namespace railhead
