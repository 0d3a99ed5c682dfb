#include "ipam/plugin/range_fields.h"

#include <utility>

namespace railhead {
namespace {

constexpr const char* kRangeField = "network configuration: ";

RangeFields ReadRangeOfSet(JsonReader& entry) {
  auto range = ReadRange(entry);
  if (!range && !entry.Has("subnet")) entry.Fail("subnet", "is missing", "such as 10.0.0.0/24");
  const auto gateway = ReadAddress(entry, "gateway");
  entry.Close();
  if (!range) return {};
  range->gateway = gateway;
  range->first_is_gateway = true;
  return std::move(*range);
}

}  // namespace

std::optional<IpAddress> ReadAddress(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  // Peers' configurations have "" where there is none.
  if (!text || text->empty()) return std::nullopt;
  auto address = IpAddress::Parse(*text);
  if (!address) reader.Fail(key, "'" + *text + "' is not an IP address");
  return address;
}

std::optional<IpPrefix> ReadPrefix(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  if (!text) return std::nullopt;
  auto prefix = IpPrefix::Parse(*text);
  if (!prefix)
    reader.Fail(key, "'" + *text + "' is not a prefix", "write ADDRESS/LENGTH, such as 10.0.0.0/24");
  return prefix;
}

std::vector<AddressRange> ReadExclude(JsonReader& reader, const std::string& key) {
  std::vector<AddressRange> exclude;
  const auto texts = reader.Strings(key);
  for (std::size_t i = 0; texts && i < texts->size(); ++i) {
    auto range = AddressRange::Parse((*texts)[i], "item " + std::to_string(i));
    if (range) {
      exclude.push_back(*range);
    } else {
      reader.Fail(key, range.error().message, range.error().hint);
    }
  }
  return exclude;
}

std::optional<RangeFields> ReadRange(JsonReader& reader) {
  RangeFields range;
  range.where = kRangeField + reader.pointer();
  const auto subnet = ReadPrefix(reader, "subnet");
  if (subnet && subnet->Network() != *subnet) {
    reader.Fail("subnet", "'" + subnet->ToString() + "' has host bits set",
                "write " + subnet->Network().ToString());
  }
  range.first = ReadAddress(reader, "rangeStart");
  range.last = ReadAddress(reader, "rangeEnd");
  if (!subnet) return std::nullopt;
  range.subnet = *subnet;
  return range;
}

std::vector<RangeSetFields> ReadRangeSets(JsonReader& reader, const std::string& key) {
  std::vector<RangeSetFields> sets;
  for (auto& list : reader.ObjectLists(key)) {
    RangeSetFields set;
    for (JsonReader& entry : list) set.push_back(ReadRangeOfSet(entry));
    if (set.empty())
      reader.Fail(key, "has an empty set", R"(write a list of lists: [[{"subnet": "10.0.0.0/24"}]])");
    for (const RangeFields& range : set) {
      if (range.subnet.address.IsV4() != set.front().subnet.address.IsV4()) {
        reader.Fail(key, "mixes IPv4 and IPv6 in one set", "give each family a set of its own");
      }
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace railhead
