#include "netns/json/strict_parser.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "netns/json/json_reader.h"

namespace railhead {
namespace {

using Json = nlohmann::json;

// "byte 72", which is the column in a text of one line, else "byte 72 (line 5, column 3)". `byte` counts
// from 1.
std::string PositionIn(std::string_view text, std::size_t byte) {
  std::string position = "byte " + std::to_string(byte);
  if (text.substr(0, text.find_last_not_of("\r\n") + 1).find('\n') == std::string_view::npos) return position;
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t column = byte - (before.rfind('\n') + 1);  // npos + 1 is 0
  return position + " (line " + std::to_string(line) + ", column " + std::to_string(column) + ")";
}

// Builds the value, and bounds the depth. It also finds what nlohmann::json accepts silently: duplicate keys,
// and NUL characters, behind which the kernel would not see the rest of a path.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  // `pointer`: of the root.
  StrictBuilder(std::string_view text, std::string_view pointer) : text_(text), pointer_(pointer) {}

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return Put(value); }
  bool string(string_t& text) override {
    if (text.find('\0') == std::string::npos) return Put(std::move(text));
    return Refuse(PlaceOfNext(), "holds a NUL character");
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool key(string_t& name) override {
    if (name.find('\0') != std::string::npos)
      return Refuse(PlaceOfInnermost(), "the name of a field holds a NUL character");
    const auto [member, is_new] = open_.back()->emplace(name, nullptr);
    member_ = &*member;
    return is_new || Refuse(PlaceOfNext(), "is there twice");
  }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t position, const std::string& token, const Json::exception&) override {
    error_ = "no valid JSON at " + PositionIn(text_, position);
    const bool printable = std::ranges::all_of(token, [](char c) { return c >= ' ' && c < 0x7f; });
    if (!token.empty() && token.size() < 40 && printable) error_ += " near '" + token + "'";
    return false;
  }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] Json Take() { return std::move(root_); }

 private:
  bool Put(Json value) {
    Place(std::move(value));
    return true;
  }
  Json* Place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_object()) return &(*member_ = std::move(value));
    return &open_.back()->emplace_back(std::move(value));
  }
  bool Open(Json empty) {
    if (open_.size() == static_cast<std::size_t>(JsonDocument::kMaxDepth))
      return Refuse(PlaceOfNext(), "nested deeper than " + std::to_string(JsonDocument::kMaxDepth));
    open_.push_back(Place(std::move(empty)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool Refuse(const std::string& place, const std::string& why) {
    error_ = (place.empty() ? "/" : place) + ": " + why;
    return false;
  }
  // Searches the members of each open object, so a text without an error pays nothing for the pointer.
  static std::string KeyOf(const Json& object, const Json* value) {
    const auto items = object.items();
    const auto is_it = [&](const auto& item) { return &item.value() == value; };
    return EscapePointer((*std::find_if(items.begin(), items.end(), is_it)).key());
  }
  // The JSON pointer of the innermost open object or array.
  [[nodiscard]] std::string PlaceOfInnermost() const {
    std::string place(pointer_);
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      place += open_[i]->is_object() ? "/" + KeyOf(*open_[i], open_[i + 1])
                                     : "/" + std::to_string(open_[i]->size() - 1);
    }
    return place;
  }
  // That of the value which comes next.
  [[nodiscard]] std::string PlaceOfNext() const {
    if (open_.empty()) return std::string(pointer_);
    const Json& innermost = *open_.back();
    return PlaceOfInnermost() + "/" +
           (innermost.is_object() ? KeyOf(innermost, member_) : std::to_string(innermost.size()));
  }

  const std::string_view text_;
  const std::string_view pointer_;
  Json root_;
  std::vector<Json*> open_;  // objects and arrays, the innermost last, which alone grows
  Json* member_ = nullptr;   // of the innermost object: whose value comes next
  std::string error_;
};

}  // namespace

tl::expected<Json, std::string> ParseStrictly(std::string_view text, std::string_view pointer) {
  StrictBuilder builder(text, pointer);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return tl::make_unexpected(builder.error());
  return builder.Take();
}

}  // namespace railhead
