#include "ipam/lease/context.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::ipam {
namespace {

// Few enough that other work of the daemon's thread, its stop above all, is not kept waiting.
constexpr std::uint64_t kCallsPerStep = 32;

}  // namespace

std::string_view NameOf(LeaseEvent::Kind kind) {
  using Kind = LeaseEvent::Kind;
  switch (kind) {
    case Kind::kClaimed:
      return "block claimed";
    case Kind::kUsable:
      return "block usable";
    case Kind::kReturned:
      return "block returned";
    case Kind::kGivenUp:
      return "claim given up";
    case Kind::kTakenBack:
      return "block taken back";
    case Kind::kLost:
      return "block lost";
    case Kind::kRestored:
      return "cluster store restored";
    case Kind::kStranger:
      return "node record not ours";
    case Kind::kWasTaken:
      return "blocks were taken";
    case Kind::kReclaimed:
      return "dead node reclaimed";
    case Kind::kPoolFull:
      return "no block left";
    case Kind::kOtherLayout:
      return "other block size";
    case Kind::kStoodStill:
      return "machine stood still";
  }
  return "unknown";
}

bool IsProblem(LeaseEvent::Kind kind) {
  using Kind = LeaseEvent::Kind;
  constexpr std::array<Kind, 6> kProblems = {Kind::kLost,     Kind::kRestored, Kind::kStranger,
                                             Kind::kWasTaken, Kind::kPoolFull, Kind::kOtherLayout};
  return Contains(kProblems, kind);
}

Result<void> LeaseContext::Save(const BookChange& change) {
  RH_TRY(book.Write(change));
  if (change.lease) lease = *change.lease;
  for (const NodeBlock& block : change.put) blocks[NameOf(block)] = block;
  for (const BlockName& name : change.erase) blocks.erase(name);
  return {};
}

Result<void> LeaseContext::SetState(NodeBlock block, BlockState state) {
  block.state = state;
  block.boot_id = now.boot_id;
  block.since_ms = now.boottime_ms;
  return Put(block);
}

bool LeaseContext::Spent() {
  if (cluster.calls() - calls_at_start < kCallsPerStep) return false;
  more = true;
  return true;
}

std::string LeaseContext::Nonce() const {
  std::array<char, 33> text{};
  const std::uint64_t high = random();
  const std::uint64_t low = random();
  (void)std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(high),
                      static_cast<unsigned long long>(low));
  return text.data();
}

void LeaseContext::NewInstance() {
  lease.previous = std::exchange(lease.instance, Nonce());
  lease.checking = true;
}

const PoolLayout* LeaseContext::LayoutOf(const std::string& pool) const {
  const auto found =
      std::ranges::find_if(settings.pools, [&](const PoolLayout& layout) { return layout.pool() == pool; });
  return found == settings.pools.end() ? nullptr : &*found;
}

void LeaseContext::Tell(LeaseEvent::Kind kind, const NodeBlock& block, std::string detail) {
  events.push_back({kind, block.pool, block.index, std::move(detail)});
}

void LeaseContext::Tell(LeaseEvent::Kind kind, std::string detail) {
  events.push_back({kind, {}, {}, std::move(detail)});
}

namespace {

using std::chrono::seconds;

constexpr std::int64_t kMaxConfiguredBlock = 65536;
constexpr std::int64_t kMaxLowWater = std::int64_t{1} << 20;
constexpr std::int64_t kMaxRenewSeconds = 3600;
constexpr std::int64_t kMaxSeconds = std::int64_t{365} * 24 * 3600;
// A node that renewed just in time is not to be fenced by one lost request.
constexpr int kRenewalsPerFence = 4;

void ReadTimes(JsonReader& reader, LeaseTimes& times, int rest_seconds) {
  times.rest = seconds(rest_seconds);
  if (const auto renew = reader.Int("renewSeconds", 1, kMaxRenewSeconds)) times.renew = seconds(*renew);
  if (const auto fence = reader.Int("fenceSeconds", 1, kMaxSeconds)) times.fence = seconds(*fence);
  if (const auto reclaim = reader.Int("reclaimSeconds", 0, kMaxSeconds)) times.reclaim = seconds(*reclaim);
  if (times.fence < kRenewalsPerFence * times.renew) {
    reader.Fail("fenceSeconds", "is less than " + std::to_string(kRenewalsPerFence) + " times renewSeconds",
                "a lost request must not stop a node");
  }
  if (times.reclaim.count() == 0) return;
  if (times.reclaim < 2 * times.fence) {
    reader.Fail("reclaimSeconds", "is less than twice fenceSeconds",
                "a node stops handing out long before others take its blocks; 0: they never do");
  }
  if (times.reclaim <= seconds(rest_seconds)) {
    reader.Fail("reclaimSeconds", "is not more than restSeconds (" + std::to_string(rest_seconds) + ")",
                "what was released last on a dead node has to rest as well");
  }
}

}  // namespace

Result<LeaseStoreConfig> ParseLeaseSettings(const std::string& json, const std::string& what,
                                            int rest_seconds) {
  LeaseStoreConfig config;
  if (json.empty()) return config;
  const auto document = RH_TRY(JsonDocument::Parse(json, what));
  JsonReader reader = document.Root();
  const std::string type = reader.String("type").value_or("node");
  if (type == "etcd") {
    config.type = LeaseStoreType::kEtcd;
  } else if (type == "kubernetes") {
    config.type = LeaseStoreType::kKubernetes;
  } else if (type != "node") {
    reader.Fail("type", "'" + type + "' is not known", "node, etcd or kubernetes");
  }
  const auto size = reader.Int("blockSize", 1, kMaxConfiguredBlock);
  config.block_size = static_cast<std::uint64_t>(size.value_or(64));
  if (!std::has_single_bit(config.block_size))
    reader.Fail("blockSize", std::to_string(config.block_size) + " is no power of two", "such as 64");
  const auto low_water = reader.Int("lowWater", 1, kMaxLowWater);
  config.low_water =
      low_water ? static_cast<std::uint64_t>(*low_water) : std::max<std::uint64_t>(1, config.block_size / 2);
  ReadTimes(reader, config.times, rest_seconds);
  if (const auto* etcd = reader.Raw("etcd"); etcd != nullptr) config.etcd = etcd->dump();
  if (const auto* kubernetes = reader.Raw("kubernetes"); kubernetes != nullptr)
    config.kubernetes = kubernetes->dump();
  reader.Close();
  RH_TRY(reader.status());
  return config;
}

}  // namespace railhead::ipam
