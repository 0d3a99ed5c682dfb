#include "netns/nl/device_attributes.h"

#include <linux/ethtool_netlink.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "netns/base/text.h"

namespace railhead::nl {
namespace {

constexpr std::size_t kWord = sizeof(std::uint32_t);

template <typename T>
std::optional<std::string> Number(BytesView payload) {
  const auto value = ReadStruct<T>(payload);
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

// The kernel sends words of 32 bits, the lowest first (ethnl_put_bitset32); a number is read from the
// highest.
std::string BitsOfWords(BytesView words) {
  std::string text;
  for (std::size_t at = words.size(); at >= kWord; at -= kWord) {
    std::uint32_t word = 0;
    std::memcpy(&word, words.data() + at - kWord, kWord);
    for (int shift = 24; shift >= 0; shift -= 8) {
      const auto byte = static_cast<std::uint8_t>(word >> static_cast<unsigned>(shift));
      text += ToHex({&byte, 1});
    }
  }
  return text;
}

std::vector<std::uint8_t> WordsOfBits(std::string_view text) {
  std::vector<std::uint8_t> words;
  constexpr std::size_t kDigits = 2 * kWord;
  for (std::size_t end = text.size(); end >= kDigits; end -= kDigits) {
    const auto word = static_cast<std::uint32_t>(ParseHex(text.substr(end - kDigits, kDigits)).value_or(0));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&word);
    words.insert(words.end(), bytes, bytes + kWord);
  }
  return words;
}

// Kept as bytes, but strictly checked by the kernel (NL_VALIDATE_NESTED).
bool IsNest(const DeviceField& field) {
  return field.source == DeviceSource::kCoalesce;
}

// The number of the highest bit that is set, from 1 on; 0: none is.
std::size_t HighestBit(const std::vector<std::uint8_t>& words) {
  for (std::size_t bit = words.size() * 8; bit > 0; --bit) {
    if ((words[(bit - 1) / 8] >> ((bit - 1) % 8) & 1) != 0) return bit;
  }
  return 0;
}

// The size that is sent ends with the highest bit. A kernel that knows fewer bits is asked to look at those
// behind its last one, and can take zeros there for ones (ethnl_bitmap32_not_zero before Linux 7).
void PutBits(Message& message, int type, std::string_view value, std::string_view mask) {
  auto values = WordsOfBits(value);
  auto masks = WordsOfBits(mask);
  const auto size = std::max<std::size_t>({HighestBit(values), HighestBit(masks), 1});
  const std::size_t bytes = (size + 31) / 32 * kWord;
  values.resize(bytes);
  masks.resize(bytes);
  const Message::Nest bits(message, type);
  message.PutU32(ETHTOOL_A_BITSET_SIZE, static_cast<std::uint32_t>(size));
  message.Put(ETHTOOL_A_BITSET_VALUE, values);
  if (mask.empty()) {
    message.Put(ETHTOOL_A_BITSET_NOMASK, {});
  } else {
    message.Put(ETHTOOL_A_BITSET_MASK, masks);
  }
}

template <typename T>
void PutNumber(Message& message, int type, std::string_view value) {
  message.PutStruct(type, static_cast<T>(NumberOf(value)));
}

}  // namespace

std::string ToHex(BytesView bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

std::optional<std::vector<std::uint8_t>> FromHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const auto byte = ParseHex(text.substr(at, 2));
    if (!byte) return std::nullopt;
    bytes.push_back(static_cast<std::uint8_t>(*byte));
  }
  return bytes;
}

std::string ListValue(std::vector<std::string> elements) {
  std::ranges::sort(elements);
  elements.erase(std::unique(elements.begin(), elements.end()), elements.end());
  return Join(elements, ",");
}

std::vector<std::string> ElementsOf(std::string_view list) {
  return list.empty() ? std::vector<std::string>{} : Split(list, ',');
}

void SetValue(DeviceState& state, std::string_view name, std::string value) {
  state.values[std::string(name)] = std::move(value);
}

std::optional<std::string> FieldValue(const DeviceField& field, BytesView payload) {
  std::optional<std::string> bits;
  switch (field.form) {
    case DeviceForm::kU8:
      return Number<std::uint8_t>(payload);
    case DeviceForm::kU16:
      return Number<std::uint16_t>(payload);
    case DeviceForm::kU32:
      return Number<std::uint32_t>(payload);
    case DeviceForm::kU64:
      return Number<std::uint64_t>(payload);
    case DeviceForm::kBytes:
      return ToHex(payload);
    case DeviceForm::kBits:
      ForEachAttribute(payload, [&](int type, BytesView value) {
        if (type == ETHTOOL_A_BITSET_VALUE) bits = BitsOfWords(value);
      });
      return bits;
    case DeviceForm::kList:
      break;  // each has a form of its own
  }
  return std::nullopt;
}

void StoreField(DeviceState& state, const DeviceField& field, BytesView payload) {
  if (auto value = FieldValue(field, payload)) SetValue(state, field.name, std::move(*value));
}

std::uint64_t NumberOf(std::string_view value) {
  std::uint64_t number = 0;
  for (const char c : value) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

void PutField(Message& message, const DeviceField& field, std::string_view value, std::string_view mask) {
  if (!IsDeviceValue(field, value)) return;
  switch (field.form) {
    case DeviceForm::kU8:
      return PutNumber<std::uint8_t>(message, field.id, value);
    case DeviceForm::kU16:
      return PutNumber<std::uint16_t>(message, field.id, value);
    case DeviceForm::kU32:
      return PutNumber<std::uint32_t>(message, field.id, value);
    case DeviceForm::kU64:
      return PutNumber<std::uint64_t>(message, field.id, value);
    case DeviceForm::kBytes:
      return message.Put(IsNest(field) ? field.id | NLA_F_NESTED : field.id,
                         FromHex(value).value_or(std::vector<std::uint8_t>{}));
    case DeviceForm::kBits:
      return PutBits(message, field.id, value, mask);
    case DeviceForm::kList:
      return;
  }
}

}  // namespace railhead::nl
