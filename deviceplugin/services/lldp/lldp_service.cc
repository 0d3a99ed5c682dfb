#include "deviceplugin/services/lldp/lldp_service.h"

#include <cstdint>
#include <string>

namespace railhead {
namespace {

std::string LeafOf(const RailLeaf* rail) {
  return rail != nullptr && rail->neighbour ? rail->neighbour->neighbour.Leaf() : "";
}

std::string PortOf(const RailLeaf* rail) {
  return rail != nullptr && rail->neighbour ? rail->neighbour->neighbour.Port() : "";
}

}  // namespace

Result<std::unique_ptr<LeafWatch>> StartLeafWatch(const Root& root, Kernel& kernel, NodeFeatures* features,
                                                  Log* log) {
  LeafWatch::Calls calls;
  calls.changed = [features, log](const LeafReport& before, const LeafReport& now) {
    LogLeaves(log, before, now);
    features->Heard(now);
  };
  calls.failed = [log](const std::string& what, const Error& error) {
    log->Warning("where a rail hangs may be unknown", error, {{"what", what}});
  };
  return LeafWatch::Start(root, kernel, std::move(calls));
}

void LogLeaves(Log* log, const LeafReport& before, const LeafReport& now) {
  for (const RailLeaf& rail : now.rails) {
    const RailLeaf* old = before.Find(rail.rail);
    const std::string leaf = LeafOf(&rail);
    const bool moved = leaf != LeafOf(old) || PortOf(&rail) != PortOf(old);
    if (moved && leaf.empty())
      log->Info("a rail's switch is not heard any more", {{"rail", rail.rail}, {"leaf", LeafOf(old)}});
    if (moved && !leaf.empty()) {
      log->Info("a rail hangs on a switch",
                {{"rail", rail.rail}, {"pf", rail.pf}, {"leaf", leaf}, {"port", PortOf(&rail)}});
    }
    const bool was_wrong = old != nullptr && old->cabling == Cabling::kWrong;
    if (rail.cabling == Cabling::kWrong && (!was_wrong || moved)) {
      log->Warning("a rail hangs on another switch than the fabric says",
                   {{"rail", rail.rail}, {"pf", rail.pf}, {"leaf", leaf}, {"because", rail.because}});
    }
    if (rail.cabling == Cabling::kRight && was_wrong)
      log->Info("a rail hangs where it belongs again", {{"rail", rail.rail}, {"leaf", leaf}});
  }
}

void AppendLeaves(Exposition* page, const LeafReport& report) {
  page->Begin(MetricType::kGauge, "railhead_rail_leaf",
              "Always 1; the switch and the port of it that a rail hangs on, as LLDP tells; without carrier "
              "the last");
  for (const RailLeaf& rail : report.rails) {
    if (!rail.neighbour) continue;
    page->Sample({{"rail", rail.rail}, {"pf", rail.pf}, {"leaf", LeafOf(&rail)}, {"port", PortOf(&rail)}},
                 std::uint64_t{1});
  }
  page->Begin(MetricType::kGauge, "railhead_rail_miscabled",
              "1 while a rail hangs on another switch than the fabric says; of rails whose switch it names");
  for (const RailLeaf& rail : report.rails) {
    if (!rail.expected.empty())
      page->Sample({{"rail", rail.rail}}, std::uint64_t{rail.cabling == Cabling::kWrong ? 1U : 0U});
  }
}

}  // namespace railhead
