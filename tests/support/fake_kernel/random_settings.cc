#include "tests/support/fake_kernel/random_settings.h"

#include <algorithm>
#include <limits>
#include <set>

#include "netns/base/text.h"
#include "tests/support/seed.h"

namespace railhead::testing {
namespace {

constexpr int kMostQueues = 8;

std::uint64_t Below(std::mt19937& random, std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
}

std::string Hex(std::mt19937& random, std::uint64_t digits) {
  std::string text;
  for (std::uint64_t i = 0; i < digits; ++i) text += "0123456789abcdef"[Below(random, 16)];
  return text;
}

template <typename T>
std::string Number(std::mt19937& random) {
  constexpr std::uint64_t kMost = std::numeric_limits<T>::max();
  switch (Below(random, 4)) {
    case 0:
      return "0";
    case 1:
      return std::to_string(kMost);
    default:
      return std::to_string(Below(random, kMost));
  }
}

std::string Table(std::mt19937& random) {
  std::string table;
  for (int i = 0; i < 4; ++i) table += "0" + std::to_string(Below(random, kMostQueues)) + "000000";
  return table;
}

std::string Element(const DeviceField& field, std::mt19937& random) {
  if (field.source == DeviceSource::kQdisc) return "tbf/00000180/" + Hex(random, 2 * Below(random, 20));
  if (field.source == DeviceSource::kDcb)
    return "5/" + std::to_string(Below(random, 64)) + "/" + std::to_string(Below(random, 8));
  if (field.source == DeviceSource::kRules)
    return std::to_string(Below(random, 1024)) + "/" + Hex(random, 336) + "/0";
  return std::to_string(1 + Below(random, 100000));
}

std::string List(const DeviceField& field, std::mt19937& random) {
  const bool one = field.source == DeviceSource::kXdp || field.source == DeviceSource::kQdisc;
  std::set<std::string> elements;
  for (std::uint64_t left = one ? Below(random, 2) : Below(random, 4); left > 0; --left)
    elements.insert(Element(field, random));
  return Join({elements.begin(), elements.end()}, ",");
}

}  // namespace

std::mt19937 SeededGenerator() {
  return std::mt19937(static_cast<std::uint32_t>(Seed()));
}

std::string RandomValue(const DeviceField& field, std::mt19937& random) {
  if (field.name == "channels.combined") return std::to_string(1 + Below(random, kMostQueues));
  if (field.name == "rss.table") return Table(random);
  switch (field.form) {
    case DeviceForm::kU8:
      return Number<std::uint8_t>(random);
    case DeviceForm::kU16:
      return Number<std::uint16_t>(random);
    case DeviceForm::kU32:
      return Number<std::uint32_t>(random);
    case DeviceForm::kU64:
      return Number<std::uint64_t>(random);
    case DeviceForm::kBytes:
      return Hex(random, 2 * Below(random, 40));
    case DeviceForm::kBits:
      return Hex(random, 8 * (1 + Below(random, 3)));
    case DeviceForm::kList:
      return List(field, random);
  }
  return "";
}

std::string AnotherValue(const DeviceField& field, const std::string& present, std::mt19937& random) {
  std::string value = RandomValue(field, random);
  while (value == present) value = RandomValue(field, random);
  return value;
}

}  // namespace railhead::testing
