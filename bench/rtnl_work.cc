#include "bench/rtnl_work.h"

#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "bench/load_process.h"
#include "bench/rtnl_report.h"

namespace railhead::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kDevice = "lo";
// Short turns, so that a machine that becomes busy for a second is so for all.
constexpr int kChangesPerTurn = 25;
constexpr int kTurnsPerRound = 6;
// Changes in a row would be a load themselves, and all meet the same moment.
constexpr auto kBetweenChanges = std::chrono::milliseconds(1);
constexpr auto kPiece = std::chrono::milliseconds(1);
constexpr std::array<const char*, 4> kBeside = {kAlone, kComputing, kListing, kScraping};

Result<void> DoNothing() {
  std::this_thread::sleep_for(kPiece);
  return {};
}

Result<void> Compute() {
  const auto end = Clock::now() + kPiece;
  while (Clock::now() < end) {
  }
  return {};
}

// Its socket is of the process that lists.
LoadProcess::Work ListLinks(Kernel& kernel, const NetNs& host) {
  return [&kernel, &host, route = std::shared_ptr<RouteApi>()]() mutable -> Result<void> {
    if (!route) route = RH_TRY(kernel.OpenRoute(host));
    RH_TRY(route->ListLinks());
    return {};
  };
}

Result<void> SetAlias(RouteApi* route, int index, const std::string& alias) {
  LinkChange change;
  change.alias = alias;
  return route->ChangeLink(index, change);
}

// Until there are enough, and a whole piece of what is beside has been met.
Result<void> Turn(RouteApi* route, int index, LoadProcess* load, const std::string& group, const char* beside,
                  Record* record) {
  LoadProcess::Done done;
  for (int i = 0; i < kChangesPerTurn || done.pieces == 0; ++i) {
    std::this_thread::sleep_for(kBetweenChanges);
    const auto before = Clock::now();
    RH_TRY(SetAlias(route, index, i % 2 == 0 ? "railhead-bench" : "bench-railhead"));
    record->Add(group, beside, kChange, "us",
                std::chrono::duration<double, std::micro>(Clock::now() - before).count());
    done = RH_TRY(load->Progress());
  }
  record->Add(
      group, beside, kPieceTime, "ms",
      std::chrono::duration<double, std::milli>(done.took).count() / static_cast<double>(done.pieces));
  return {};
}

Result<void> Rounds(RouteApi* route, int index, LoadProcess* load, const RtnlSetting& setting,
                    Record* record) {
  for (int turn = 0; turn < setting.rounds * kTurnsPerRound; ++turn) {
    for (std::size_t work = 0; work < kBeside.size(); ++work) {
      RH_TRY(load->Switch(work));
      RH_TRY(Turn(route, index, load, setting.group, kBeside[work], record));
    }
  }
  return {};
}

}  // namespace

Result<void> MeasureRtnl(Kernel& kernel, const RtnlSetting& setting, Record* record) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  LoadProcess load =
      RH_TRY(LoadProcess::Start({DoNothing, Compute, ListLinks(kernel, host), setting.scrape}));
  const auto route = RH_TRY(kernel.OpenRoute(host));
  const auto link = RH_TRY(route->FindLink(kDevice));
  if (!link) return Fail(ErrorCode::kNotFound, std::string("there is no ") + kDevice);
  auto measured = Rounds(route.get(), link->index, &load, setting, record);
  RH_TRY(SetAlias(route.get(), link->index, link->alias));
  return measured;
}

}  // namespace railhead::bench
