#include "netns/gid/gid_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

constexpr int kMappedBits = 96;  // before the IPv4 address: RFC 4291 section 2.5.5.2

// "fe80:0000:0000:0000:5054:00ff:fe00:0001", as print_gid of
// drivers/infiniband/core/sysfs.c writes it: eight full groups.
std::optional<IpAddress> ParseGid(const std::string& text) {
  auto gid = IpAddress::Parse(text);
  if (!gid || gid->IsV4()) return std::nullopt;
  return gid;
}

constexpr std::string_view kUnused = "0000:0000:0000:0000:0000:0000:0000:0000";

std::optional<GidType> ParseType(const std::string& text) {
  if (text == "RoCE v2") return GidType::kRoceV2;
  if (text == "IB/RoCE v1" || text == "RoCE v1") return GidType::kRoceV1;
  if (text == "IB") return GidType::kInfiniband;
  return std::nullopt;
}

std::string TypeName(GidType type) {
  switch (type) {
    case GidType::kRoceV1:
      return "RoCE v1";
    case GidType::kRoceV2:
      return "RoCE v2";
    case GidType::kInfiniband:
      break;
  }
  return "InfiniBand";
}

// An attribute of a table slot. An unused slot's type and netdev fail with
// EINVAL; that is how the kernel says "none". Relative to an open directory and
// by the fewest system calls: tables have up to 1024 slots, most of them unused.
std::optional<std::string> ReadSlot(int directory, const std::string& name) {
  const UniqueFd fd(openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::array<char, 64> text{};  // a GID has 39 characters
  const ssize_t size = read(fd.get(), text.data(), text.size());
  if (size <= 0) return std::nullopt;
  std::string_view view(text.data(), static_cast<std::size_t>(size));
  if (view.back() == '\n') view.remove_suffix(1);
  return std::string(view);
}

std::optional<GidEntry> ReadEntry(int port, const std::string& index) {
  const auto number = ParseInt(index);
  const auto text = ReadSlot(port, "gids/" + index);
  if (!number || !text) return std::nullopt;
  if (*text == kUnused) return std::nullopt;
  const auto gid = ParseGid(*text);
  if (!gid || gid->IsUnspecified()) return std::nullopt;
  const auto type = ParseType(ReadSlot(port, "gid_attrs/types/" + index).value_or(""));
  if (!type) return std::nullopt;
  GidEntry entry;
  entry.index = static_cast<int>(*number);
  entry.gid = *gid;
  entry.type = *type;
  entry.netdev = ReadSlot(port, "gid_attrs/ndevs/" + index).value_or("");
  return entry;
}

}  // namespace

IpAddress GidOf(const IpAddress& address) {
  if (address.IsV6()) return address;
  std::array<std::uint8_t, 16> bytes{};
  bytes[10] = bytes[11] = 0xff;
  std::copy_n(address.Data(), address.Size(), bytes.begin() + 12);
  return *IpAddress::FromBytes(bytes.data(), bytes.size());
}

IpAddress AddressOfGid(const IpAddress& gid) {
  if (gid.IsV4() || gid.Masked(kMappedBits) != *IpAddress::Parse("::ffff:0:0")) return gid;
  return *IpAddress::FromBytes(gid.Data() + kMappedBits / 8, 4);
}

Result<std::optional<std::vector<GidEntry>>> ReadGidTable(const Root& root, const std::string& device,
                                                          int port, int slots) {
  if (device.empty() || device.find('/') != std::string::npos || device[0] == '.') return std::nullopt;
  const std::string directory =
      root.Path("/sys/class/infiniband/" + device + "/ports/" + std::to_string(port));
  const UniqueFd fd(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() && errno != ENOENT) return FailSys(errno, "opening " + directory);
  if (!fd.valid()) return std::nullopt;
  std::vector<std::string> names;
  if (slots == kAllSlots) {
    auto listed = RH_TRY_WRAP(ListDirectory(directory + "/gids"), "reading the GID table of " + device);
    if (!listed) return std::nullopt;  // gone in between
    names = std::move(*listed);
  }
  for (int slot = 0; slot < slots; ++slot) names.push_back(std::to_string(slot));
  std::vector<GidEntry> table;
  for (const std::string& name : names) {
    if (auto entry = ReadEntry(fd.get(), name)) table.push_back(std::move(*entry));
  }
  std::ranges::sort(table, [](const GidEntry& a, const GidEntry& b) { return a.index < b.index; });
  return table;
}

std::string Describe(const std::vector<GidEntry>& table) {
  std::vector<std::string> lines;
  lines.reserve(table.size());
  for (const GidEntry& entry : table) {
    lines.push_back("index " + std::to_string(entry.index) + ": " + entry.gid.ToString() + " " +
                    TypeName(entry.type) + " " + entry.netdev);
  }
  return Join(lines, "\n");
}

std::optional<GidEntry> FindGid(const std::vector<GidEntry>& table, const IpAddress& address, GidType type,
                                const std::string& netdev) {
  const IpAddress gid = GidOf(address);
  std::optional<GidEntry> found;
  for (const GidEntry& entry : table) {
    if (entry.gid == gid && entry.type == type && entry.netdev == netdev &&
        (!found || entry.index < found->index)) {
      found = entry;
    }
  }
  return found;
}

// "present", then "INDEX GID TYPE NETDEV" a line; names of interfaces have no blanks.
std::string EncodeGidTable(const std::optional<std::vector<GidEntry>>& table) {
  if (!table) return "absent";
  std::string text = "present";
  for (const GidEntry& entry : *table) {
    text += "\n" + std::to_string(entry.index) + " " + entry.gid.ToString() + " " +
            std::to_string(static_cast<int>(entry.type)) + " " + entry.netdev;
  }
  return text;
}

Result<std::optional<std::vector<GidEntry>>> DecodeGidTable(const std::string& text) {
  const std::vector<std::string> lines = Split(text, '\n');
  if (text == "absent") return std::nullopt;
  const auto malformed = [] { return Fail(ErrorCode::kInternal, "decoding a GID table: malformed"); };
  if (lines[0] != "present") return malformed();
  std::vector<GidEntry> table;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = Split(lines[i], ' ');
    if (fields.size() != 4) return malformed();
    const auto index = ParseInt(fields[0]);
    const auto gid = IpAddress::Parse(fields[1]);
    const auto type = ParseInt(fields[2]);
    if (!index || !gid || !gid->IsV6() || !type || *type < 0 || *type > 2) return malformed();
    table.push_back({static_cast<int>(*index), *gid, static_cast<GidType>(*type), fields[3]});
  }
  return table;
}

}  // namespace railhead
