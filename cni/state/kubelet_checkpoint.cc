#include "cni/state/kubelet_checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "cni/state/paths.h"
#include "cni/state/slot_name.h"
#include "netns/base/files.h"
#include "netns/base/root_file.h"
#include "netns/json/char_iterator.h"
#include "netns/json/json_reader.h"
#include "netns/sys/pci_address.h"

namespace railhead {
namespace {

// Reads up to `size` bytes; 0: the end.
using Source = std::function<Result<std::size_t>(char* to, std::size_t size)>;

// JSON text in pieces, with the end of each long string left out. A plugin's answer ("AllocResp") can have
// megabytes, and the parser holds a string whole. No name and no id of ours is as long as what is kept.
// Not a std::streambuf: with it each ADD would load the C++ library's locales, a seventh of the plugin.
class ShortStrings {
 public:
  explicit ShortStrings(Source source) : source_(std::move(source)) { Fill(); }
  [[nodiscard]] bool AtEnd() const { return next_ == end_; }
  [[nodiscard]] const char& Get() const { return *next_; }
  void Next() {
    if (++next_ == end_) Fill();
  }
  [[nodiscard]] const Result<void>& status() const { return status_; }

 private:
  static constexpr std::size_t kLongest = 1024;

  // At the end, or after an error, there is nothing more.
  void Fill() {
    do {
      next_ = end_ = buffer_.data();
      const auto got = source_(buffer_.data(), buffer_.size());
      if (!got) status_ = Fail(got.error());
      if (!got || *got == 0) return;
      for (std::size_t i = 0; i < *got; ++i) {
        if (const char c = buffer_[i]; Keeps(c)) *end_++ = c;
      }
    } while (next_ == end_);
  }

  bool Keeps(char c) {
    if (!quoted_) {
      quoted_ = c == '"';
      length_ = since_escape_ = 0;
    } else if (escaped_) {
      escaped_ = false;
    } else if (c == '"') {
      quoted_ = cut_ = false;
    } else if (c == '\\') {
      escaped_ = true;
      since_escape_ = 0;
    } else {
      // Not within \u1234, nor within a character of UTF-8.
      cut_ = cut_ || (++length_ > kLongest && ++since_escape_ > 4 &&
                      (static_cast<unsigned char>(c) & 0xc0U) != 0x80U);
    }
    return !cut_;
  }

  const Source source_;
  Result<void> status_;
  std::array<char, 65536> buffer_;
  char* next_ = nullptr;
  char* end_ = nullptr;
  bool quoted_ = false;  // within a string
  bool escaped_ = false;
  bool cut_ = false;              // the string goes on, but is long enough
  std::size_t length_ = 0;        // of the string
  std::size_t since_escape_ = 0;  // characters
};

// "mlx5_core.sf.4": a device of the auxiliary bus (drivers/base/auxiliary.c).
bool IsAuxiliaryName(std::string_view id) {
  const auto last = id.rfind('.');
  return last != std::string_view::npos && last + 1 < id.size() && id.find('.') != last &&
         id.find_first_not_of("0123456789", last + 1) == std::string_view::npos;
}

bool MayBeOurs(const std::string& id) {
  return IsSlot(id) || IsAuxiliaryName(id) || PciAddress::Parse(id).has_value();
}

// The values of a checkpoint that are read. All others are kOther.
enum class Value : std::uint8_t {
  kFile,
  kData,
  kEntries,
  kEntry,
  kPod,
  kContainer,
  kResource,
  kIds,     // an object: lists by NUMA node
  kIdList,  // of a NUMA node, or of all
  kId,
  kOther
};

struct Field {
  Value of;
  std::string_view name;
  Value value;
};
constexpr std::array<Field, 6> kFields{{{Value::kFile, "Data", Value::kData},
                                        {Value::kData, "PodDeviceEntries", Value::kEntries},
                                        {Value::kEntry, "PodUID", Value::kPod},
                                        {Value::kEntry, "ContainerName", Value::kContainer},
                                        {Value::kEntry, "ResourceName", Value::kResource},
                                        {Value::kEntry, "DeviceIDs", Value::kIds}}};

class CheckpointReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  CheckpointReader(std::string what, std::string all_of)
      : what_(std::move(what)), all_of_(std::move(all_of)) {}

  // `whole`: the text was read to its end.
  [[nodiscard]] Result<std::vector<ContainerDevices>> Take(bool whole) {
    if (whole && !fields_.contains(Value::kData))
      whole = Refuse(Value::kData, "is missing", "is this kubelet's checkpoint?");
    if (!whole) return Fail(std::move(error_));
    return std::move(all_);
  }

  bool null() override {
    const Value value = Next();
    if (value == Value::kFile || value == Value::kEntry || value == Value::kId) return WrongType("null");
    fields_.erase(value);  // absent
    return true;
  }
  bool boolean(bool /*value*/) override { return Scalar("boolean"); }
  bool number_integer(number_integer_t /*value*/) override { return Scalar("number"); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return Scalar("number"); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return Scalar("number"); }
  bool binary(binary_t& /*value*/) override { return Scalar("binary"); }
  bool string(string_t& text) override {
    const Value value = Next();
    if (value == Value::kOther) return true;
    if (text.find('\0') != std::string::npos) return Refuse(value, "holds a NUL character");
    switch (value) {
      case Value::kPod:
        entry_.pod_uid = text;
        return true;
      case Value::kContainer:
        entry_.container = text;
        return true;
      case Value::kResource:
        entry_.resource = text;
        return true;
      case Value::kId:
        if (MayBeOurs(text) || IsWhole(true)) entry_.ids.push_back(text);
        return true;
      default:
        return WrongType("string");
    }
  }
  bool start_object(std::size_t /*size*/) override {
    const Value value = Next();
    switch (value) {
      case Value::kEntry:
        entry_ = {};
        std::erase_if(fields_, [](Value field) { return field > Value::kEntry; });
        [[fallthrough]];
      case Value::kFile:
      case Value::kData:
      case Value::kIds:
      case Value::kOther:
        return Open(value);
      default:
        return WrongType("object");
    }
  }
  bool key(string_t& name) override {
    const Value object = open_.back();
    const auto* const field =
        std::ranges::find_if(kFields, [&](const Field& one) { return one.of == object && one.name == name; });
    field_ = field == kFields.end() ? Value::kOther : field->value;
    if (field_ == Value::kOther || fields_.insert(field_).second) return true;
    return Refuse(field_, "is there twice");
  }
  bool end_object() override {
    const Value object = open_.back();
    open_.pop_back();
    return object != Value::kEntry || EndEntry();
  }
  bool start_array(std::size_t /*size*/) override {
    const Value value = Next();
    switch (value) {
      case Value::kIds:
        return Open(Value::kIdList);
      case Value::kEntries:
      case Value::kIdList:
      case Value::kOther:
        return Open(value);
      default:
        return WrongType("array");
    }
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    // Positions are of a text that was cut.
    const auto known = std::ranges::find(open_, Value::kOther);
    const std::string within = known == open_.begin() ? "" : " in " + PlaceOf(*(known - 1));
    error_ = {ErrorCode::kMalformed, what_ + ": no valid JSON" + within, {}, 0};
    return false;
  }

 private:
  [[nodiscard]] Value Next() const {
    if (open_.empty()) return Value::kFile;
    switch (open_.back()) {
      case Value::kEntries:
        return Value::kEntry;
      case Value::kIds:
        return Value::kIdList;
      case Value::kIdList:
        return Value::kId;
      case Value::kOther:
        return Value::kOther;
      default:
        return field_;
    }
  }
  bool Open(Value value) {
    if (open_.size() == static_cast<std::size_t>(JsonDocument::kMaxDepth))
      return Refuse(Value::kFile, "nested deeper than " + std::to_string(JsonDocument::kMaxDepth));
    open_.push_back(value);
    return true;
  }
  bool Scalar(const char* type) { return Next() == Value::kOther || WrongType(type); }
  // `yet`: before the entry ends, while its pod may be unknown.
  [[nodiscard]] bool IsWhole(bool yet) const {
    return !all_of_.empty() && (entry_.pod_uid == all_of_ || (yet && entry_.pod_uid.empty()));
  }
  bool EndEntry() {
    for (const auto& [field, text] : {std::pair{Value::kPod, &entry_.pod_uid},
                                      {Value::kContainer, &entry_.container},
                                      {Value::kResource, &entry_.resource}}) {
      if (text->empty()) return Refuse(field, "is required and must not be empty");
    }
    if (!IsWhole(false)) std::erase_if(entry_.ids, [](const std::string& id) { return !MayBeOurs(id); });
    all_.push_back(std::move(entry_));
    return true;
  }
  // The JSON pointer of the value that is read now.
  [[nodiscard]] std::string PlaceOf(Value value) const {
    if (value == Value::kFile) return "/";
    std::string place = "/Data";
    if (value >= Value::kEntries) place += "/PodDeviceEntries";
    if (value >= Value::kEntry) place += "/" + std::to_string(all_.size());
    if (value == Value::kIdList || value == Value::kId) value = Value::kIds;
    for (const Field& field : kFields) {
      if (field.of == Value::kEntry && field.value == value) place += "/" + std::string(field.name);
    }
    return place;
  }
  bool WrongType(const std::string& type) {
    const Value value = Next();
    std::string wanted = "a string";
    if (value == Value::kEntries) wanted = "a list of objects";
    if (value == Value::kIds || value == Value::kIdList) wanted = "a list of device ids";
    if (value <= Value::kData || value == Value::kEntry) wanted = "an object";
    const bool is_id = value == Value::kId;
    return Refuse(value, is_id ? "has an id that is not a string" : "is not " + wanted + " but " + type);
  }
  bool Refuse(Value value, const std::string& why, std::string hint = {}) {
    error_ = {ErrorCode::kInvalid, what_ + ": " + PlaceOf(value) + ": " + why, std::move(hint), 0};
    return false;
  }

  const std::string what_;
  const std::string all_of_;
  std::vector<ContainerDevices> all_;
  ContainerDevices entry_;
  std::vector<Value> open_;      // objects and lists, the innermost last
  Value field_ = Value::kOther;  // of the innermost object: whose value comes next
  std::set<Value> fields_;       // that are there: of the file, and of the entry
  Error error_;
};

Result<std::vector<ContainerDevices>> Parse(Source source, const std::string& what,
                                            const std::string& all_of) {
  ShortStrings text(std::move(source));
  CheckpointReader reader(what, all_of);
  const bool whole =
      nlohmann::json::sax_parse(CharIterator(&text), CharIterator<ShortStrings>(nullptr), &reader);
  RH_TRY(text.status());
  return reader.Take(whole);
}

}  // namespace

Result<std::vector<ContainerDevices>> ParseCheckpoint(const std::string& text, const std::string& what,
                                                      const std::string& all_of) {
  std::string_view rest = text;
  const auto read = [&rest](char* to, std::size_t size) {
    const std::size_t n = rest.copy(to, size);
    rest.remove_prefix(n);
    return Result<std::size_t>(n);
  };
  return Parse(read, what, all_of);
}

Result<std::vector<ContainerDevices>> ReadCheckpoint(const Root& root, const std::string& all_of) {
  const std::string path = paths::KubeletCheckpoint(root);
  const auto file = RH_TRY(OpenRootFile(path));
  if (!file) return std::vector<ContainerDevices>{};
  const auto read = [&](char* to, std::size_t size) -> Result<std::size_t> {
    for (;;) {
      const ssize_t n = ::read(file->get(), to, size);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return FailSys(errno, "reading " + path);
    }
  };
  return Parse(read, path, all_of);
}

bool KubeletForgot(const Root& root, const std::string& pod_uid) {
  // A UID comes from CNI_ARGS: the path must not leave the folder.
  if (pod_uid.empty() || pod_uid[0] == '.' || pod_uid.find('/') != std::string::npos) return false;
  const auto pods = ListDirectory(paths::KubeletPods(root));
  return pods && *pods && !(*pods)->empty() &&
         std::find((*pods)->begin(), (*pods)->end(), pod_uid) == (*pods)->end();
}

}  // namespace railhead
