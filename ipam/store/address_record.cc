#include "ipam/store/address_record.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "ipam/store/lmdb.h"
#include "netns/base/bytes.h"

namespace railhead::ipam {
namespace {

using bytes::Number;
using bytes::Reader;
using bytes::Text;

// What every allocation changes lies side by side: fewer pages per commit.
constexpr char kStartTable = 'W';
constexpr char kPoolTable = 'P';
constexpr char kRunTable = 'R';
constexpr char kHeaderTable = 'S';
constexpr char kReuseQueueTable = 'T';
constexpr char kQuarantineTable = 'U';
constexpr char kAddressTable = 'A';
constexpr char kOwnerTable = 'O';

constexpr std::string_view kMagic = "railhead-ipam";
constexpr std::uint64_t kFormat = 1;
constexpr char kLinkSeparator = '/';

Error Malformed(std::string_view what) {
  return {ErrorCode::kIo, "address store: malformed " + std::string(what) + " record",
          "the store was written by a newer version or is damaged: restore it from a backup", 0};
}

std::string Prefix(char table, std::string_view pool) {
  std::string key(1, table);
  key.append(pool).push_back('\0');
  return key;
}

}  // namespace

std::uint64_t StoreHeader::StoreTime(const ClockReading& now) const {
  if (now.boot_id != boot_id) return store_ms + now.boottime_ms;
  return store_ms + (now.boottime_ms > boottime_ms ? now.boottime_ms - boottime_ms : 0);
}

StoreHeader StoreHeader::After(const ClockReading& now) const {
  const std::uint64_t counted_ms = now.boot_id == boot_id ? boottime_ms : 0;
  return {now.boot_id, std::max(counted_ms, now.boottime_ms), StoreTime(now)};
}

std::string UtcText(std::int64_t wall_seconds) {
  constexpr std::size_t kLongest = 64;
  const std::time_t seconds = wall_seconds;
  std::tm utc{};
  std::array<char, kLongest> text{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return "an unknown time";
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &utc)};
}

std::string Encode(const StoreHeader& header) {
  return Text(kMagic) + Number(kFormat) + Text(header.boot_id) + Number(header.boottime_ms) +
         Number(header.store_ms);
}

std::string Encode(const AddressRecord& allocation) {
  return Number(static_cast<std::uint64_t>(allocation.state)) + Text(allocation.owner.network) +
         Text(allocation.owner.container) + Text(allocation.owner.ifname) + Text(allocation.boot_id) +
         Number(allocation.since_ms) + Number(static_cast<std::uint64_t>(allocation.wall_seconds)) +
         (allocation.state == AddressState::kQuarantined ? Number(allocation.until_ms) : "");
}

std::string Encode(const IpAddress& address) {
  std::string bytes(address.Size(), '\0');
  std::copy_n(address.Data(), address.Size(), bytes.begin());
  return bytes;
}

Result<StoreHeader> DecodeHeader(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.Text() != kMagic) return Fail(Malformed("header"));
  if (const std::uint64_t format = reader.Number(); format != kFormat) {
    return Fail(
        ErrorCode::kUnsupported,
        "address store: format " + std::to_string(format) + ", this version knows " + std::to_string(kFormat),
        "use the version of railhead-ipam that wrote the store");
  }
  StoreHeader header;
  header.boot_id = reader.Text();
  header.boottime_ms = reader.Number();
  header.store_ms = reader.Number();
  if (!reader.Done()) return Fail(Malformed("header"));
  return header;
}

Result<AddressRecord> DecodeRecord(std::string_view key, std::string_view bytes) {
  AddressRecord allocation;
  const auto end_of_pool = key.find('\0');
  if (key.empty() || end_of_pool == std::string_view::npos) return Fail(Malformed("address"));
  allocation.pool = key.substr(1, end_of_pool - 1);
  allocation.address = RH_TRY(DecodeAddress(key.substr(end_of_pool + 1)));
  Reader reader(bytes);
  const std::uint64_t state = reader.Number();
  allocation.state = static_cast<AddressState>(state);
  allocation.owner.network = reader.Text();
  allocation.owner.container = reader.Text();
  allocation.owner.ifname = reader.Text();
  allocation.boot_id = reader.Text();
  allocation.since_ms = reader.Number();
  allocation.wall_seconds = static_cast<std::int64_t>(reader.Number());
  if (allocation.state == AddressState::kQuarantined) allocation.until_ms = reader.Number();
  const bool known = state >= static_cast<std::uint64_t>(AddressState::kHeld) &&
                     state <= static_cast<std::uint64_t>(AddressState::kQuarantined);
  if (!reader.Done() || !known) return Fail(Malformed("address"));
  return allocation;
}

Result<IpAddress> DecodeAddress(std::string_view bytes) {
  const auto address = IpAddress::FromBytes(bytes.data(), bytes.size());
  if (!address) return Fail(Malformed("address"));
  return *address;
}

std::string HeaderKey() {
  return {kHeaderTable};
}

std::string StartKey() {
  return {kStartTable};
}

std::string PoolKey(std::string_view pool) {
  return std::string(1, kPoolTable).append(pool);
}

std::string RunPrefix(std::string_view pool) {
  return Prefix(kRunTable, pool);
}

std::string ReuseQueuePrefix(std::string_view pool) {
  return Prefix(kReuseQueueTable, pool);
}

std::string ReuseQueueKey(std::string_view pool, std::uint64_t since_ms, const IpAddress& address) {
  return ReuseQueuePrefix(pool) + Number(since_ms) + Encode(address);
}

std::string QuarantinePrefix(std::string_view pool) {
  return Prefix(kQuarantineTable, pool);
}

std::string QuarantineKey(std::string_view pool, std::uint64_t until_ms, const IpAddress& address) {
  return QuarantinePrefix(pool) + Number(until_ms) + Encode(address);
}

std::string AddressPrefix(std::string_view pool) {
  return Prefix(kAddressTable, pool);
}

std::string AllAddressesPrefix() {
  return {kAddressTable};
}

std::string AddressKey(std::string_view pool, const IpAddress& address) {
  return AddressPrefix(pool) + Encode(address);
}

Result<void> CheckOwner(const AddressOwner& owner, std::string_view pool) {
  const std::array<std::pair<std::string_view, std::string_view>, 3> names{
      {{"network name", owner.network}, {"container id", owner.container}, {"interface name", owner.ifname}}};
  for (const auto& [what, name] : names) {
    if (name.empty()) return Fail(ErrorCode::kInvalid, std::string(what) + " is empty");
    if (name.find('\0') != std::string_view::npos) {
      return Fail(ErrorCode::kInvalid, std::string(what) + " contains a NUL byte");
    }
  }
  if (const std::size_t size = OwnerPrefix(owner).size() + pool.size(); size > kMaxKeySize) {
    return Fail(ErrorCode::kInvalid,
                "network name, container id and interface name are " + std::to_string(size - kMaxKeySize) +
                    " bytes too long together",
                "choose a shorter network name");
  }
  return {};
}

std::string OwnerPrefix(const AddressOwner& owner) {
  std::string key(1, kOwnerTable);
  for (const std::string* part : {&owner.network, &owner.container, &owner.ifname}) {
    key.append(*part).push_back('\0');
  }
  return key;
}

std::string LinkOwnersPrefix(const AddressOwner& owner) {
  std::string prefix = OwnerPrefix(owner);
  prefix.back() = kLinkSeparator;
  return prefix;
}

AddressOwner LinkOwner(AddressOwner attachment, std::string_view link) {
  if (!link.empty()) attachment.ifname.append(1, kLinkSeparator).append(link);
  return attachment;
}

std::string_view AttachmentIfname(const AddressOwner& owner) {
  const std::string_view whole = owner.ifname;
  return whole.substr(0, whole.find(kLinkSeparator));
}

std::string_view LinkName(const AddressOwner& owner) {
  const std::string_view whole = owner.ifname;
  const std::size_t separator = whole.find(kLinkSeparator);
  return separator == std::string_view::npos ? std::string_view() : whole.substr(separator + 1);
}

std::string AllOwnersPrefix() {
  return {kOwnerTable};
}

Result<QueueEntry> DecodeQueueKey(std::string_view pool, std::string_view key) {
  Reader reader(key.substr(ReuseQueuePrefix(pool).size()));
  QueueEntry entry;
  entry.at_ms = reader.Number();
  entry.address = RH_TRY(DecodeAddress(reader.Rest()));
  return entry;
}

}  // namespace railhead::ipam
