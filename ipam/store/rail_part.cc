#include "ipam/store/rail_part.h"

#include "ipam/store/address_record.h"
#include "ipam/store/range.h"
#include "ipam/store/store.h"
#include "netns/base/bytes.h"

namespace railhead::ipam {
namespace {

using bytes::Number;
using bytes::Reader;
using bytes::Text;

std::string PartKey(const std::string& rail) {
  return "N" + rail;
}

std::string EncodeRanges(const std::vector<IpRange>& ranges) {
  std::string text = Number(ranges.size());
  for (const IpRange& range : ranges) text += Text(Encode(range.first)) + Text(Encode(range.last));
  return text;
}

Result<std::vector<IpRange>> DecodeRanges(Reader& reader) {
  std::vector<IpRange> ranges;
  for (std::uint64_t left = reader.Number(); left > 0; --left) {
    const std::string first = reader.Text();
    const std::string last = reader.Text();
    IpRange range;
    range.first = RH_TRY(DecodeAddress(first));
    range.last = RH_TRY(DecodeAddress(last));
    ranges.push_back(range);
  }
  return ranges;
}

Result<std::optional<PartRecord>> ReadPart(const LmdbTxn& txn, const std::string& rail) {
  const auto value = RH_TRY(txn.Get(PartKey(rail)));
  if (!value) return std::nullopt;
  Reader reader(*value);
  PartRecord part;
  part.since_ms = reader.Number();
  part.ranges = RH_TRY(DecodeRanges(reader));
  part.settled = RH_TRY(DecodeRanges(reader));
  if (!reader.Done()) {
    return Fail(ErrorCode::kIo, "address store: malformed record of the part of rail " + rail,
                "the store was written by a newer version or is damaged: restore it from a backup");
  }
  return part;
}

}  // namespace

PartRecord Advance(const std::optional<PartRecord>& before, const std::vector<IpRange>& ranges,
                   std::uint64_t store_ms, std::chrono::milliseconds reuse_delay) {
  if (!before) return {ranges, ranges, store_ms};
  PartRecord now = *before;
  if (store_ms >= now.since_ms + static_cast<std::uint64_t>(reuse_delay.count())) now.settled = now.ranges;
  if (now.ranges == ranges) return now;
  return {ranges, Intersection(now.settled, ranges), store_ms};
}

Result<bool> NotePart(LmdbTxn& txn, const RailPart& part, std::uint64_t store_ms) {
  const auto before = RH_TRY(ReadPart(txn, part.rail));
  const PartRecord now = Advance(before, part.ranges, store_ms, part.reuse_delay);
  if (before == now) return false;
  RH_TRY(txn.Put(PartKey(part.rail),
                 Number(now.since_ms) + EncodeRanges(now.ranges) + EncodeRanges(now.settled)));
  return true;
}

Result<void> KeepToSettled(const LmdbTxn& txn, AddressPool* pool, std::uint64_t store_ms) {
  if (!pool->part) return {};
  const auto before = RH_TRY(ReadPart(txn, pool->part->rail));
  const PartRecord now = Advance(before, pool->part->ranges, store_ms, pool->part->reuse_delay);
  if (now.settled == now.ranges) return {};
  auto settled = pool->ranges.Within(now.settled);
  if (settled) {
    pool->ranges = *std::move(settled);
    return {};
  }
  const std::uint64_t passed_s = (store_ms - now.since_ms) / 1000;
  return Fail(ErrorCode::kBusy,
              "this node's part of rail " + pool->part->rail + " has changed, to " + pool->ranges.ToString() +
                  ": pods of another node may have had these addresses until " + std::to_string(passed_s) +
                  " s ago",
              "try again: they are given reuseDelaySeconds (" +
                  std::to_string(pool->part->reuse_delay.count()) + ") after the change");
}

}  // namespace railhead::ipam
