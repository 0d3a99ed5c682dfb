// Writes and reads the records of record.h as JSON.
//
//   const std::string text = RH_TRY(FormatRecord(drain, "drain"));
//   const Drain drain = RH_TRY(ParseRecord<Drain>(text, path));
//
// Included where a record is written or read, and nowhere else: the templates take their time to compile.
// Errors of the reader: as JsonReader has them, with the place ("drains.json: /since: is not a time ...").
// FormatRecord: kInvalid with the same words, when the reader would refuse what it writes.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/json/json_reader.h"
#include "netns/json/record_read.h"
#include "netns/json/record_write.h"
#include "netns/json/state_file.h"

namespace railhead {

enum class UnknownFields : std::uint8_t {
  kPassOver,  // of what a newer version may have written
  kRefuse,    // of what people write
};

// A record, or a list of them, as a part of other JSON. It is written even if the reader would refuse it.
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

// A record as a part of other JSON: errors stick in the reader.
template <typename T>
T ReadRecord(JsonReader& reader, UnknownFields unknown = UnknownFields::kPassOver) {
  T value;
  record::ReadFields(value, reader, unknown == UnknownFields::kRefuse, true);
  return value;
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

// A section that people write and that was kept as text (record::RawForm). `pointer`: its place in `what`
// ("/addresses/index"). "": the section is absent, and everything has its default.
// `check`: as Shape::Check(), for conditions that only the caller knows. `all` gets all errors, the result
// has the first.
template <typename T>
Result<T> ParseSection(
    const std::string& text, const std::string& what, const std::string& pointer, std::vector<Error>* all,
    const std::function<void(const T&, const record::Complain&)>& check = [](const auto&, const auto&) {}) {
  T value;
  if (text.empty()) return value;
  const auto document = RH_TRY(JsonDocument::Parse(text, what, JsonDocument::kMaxSize, pointer));
  const JsonValue section = document.Value();
  if (record::ReadObject(section, value, true)) {
    check(value, record::Complain([&](const auto& at, const auto& why, const auto& hint) {
            section.FailWithin(at, why, hint);
          }));
  }
  if (all != nullptr) *all = document.errors();
  RH_TRY(document.status());
  return value;
}

template <typename T>
Result<std::optional<T>> StateFile<T>::Read(const Root& root) const {
  const std::string file = PathIn(root);
  const auto text = RH_TRY(ReadRootFile(file, max_size));
  if (!text) return std::nullopt;
  return RH_TRY(ParseRecord<T>(*text, file, UnknownFields::kPassOver, max_size));
}

template <typename T>
Result<void> StateFile<T>::Write(const Root& root, const T& value) const {
  const std::string text = RH_TRY_WRAP(FormatRecord(value, PathIn(root)), what);
  if (text.size() > max_size) {
    return Fail(ErrorCode::kInvalid, std::string{what} + ": " + PathIn(root) + ": would be larger than " +
                                         std::to_string(max_size) + " bytes");
  }
  return WithContext(WriteStateFile(root, PathIn(root), text), what);
}

}  // namespace railhead
