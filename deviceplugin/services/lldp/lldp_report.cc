#include "deviceplugin/services/lldp/lldp_report.h"

#include <algorithm>
#include <utility>

#include "netns/json/record_io.h"

template struct railhead::StateFile<railhead::lldp::LldpReport>;

namespace railhead::lldp {
const RailNeighbor* LldpReport::Find(const std::string& rail) const {
  const auto found = std::ranges::find(rails, rail, &RailNeighbor::rail);
  return found == rails.end() ? nullptr : &*found;
}

bool SaysTheSame(const LldpReport& a, const LldpReport& b) {
  return a.node == b.node && std::equal(a.rails.begin(), a.rails.end(), b.rails.begin(), b.rails.end(),
                                        [](RailNeighbor one, RailNeighbor other) {
                                          for (RailNeighbor* rail : {&one, &other}) {
                                            if (rail->neighbor) rail->neighbor->heard = {};
                                          }
                                          return one == other;
                                        });
}

std::string CablingOf(const RailNeighbor& rail) {
  std::string text(WordOf(rail.cabling));
  if (!rail.because.empty()) text += ": " + rail.because;
  if (rail.neighbor && !rail.carrier) text += " (no carrier)";
  for (const std::string& other : rail.others) text += "; also heard: " + other;
  return text;
}

namespace {

std::chrono::seconds LifeOf(const LldpNeighbor& neighbor) {
  return std::min(neighbor.ttl, NeighborTable::kLongest);
}

}  // namespace

void NeighborTable::Restore(const std::string& device, const HeardNeighbor& heard, const Time& time) {
  entries_[device] = {{heard, time.now + LifeOf(heard.neighbor), false}};
}

void NeighborTable::Add(const std::string& device, const LldpNeighbor& neighbor, const Time& time) {
  std::vector<Entry>& entries = entries_[device];
  const auto known = std::ranges::find_if(
      entries, [&](const Entry& entry) { return entry.heard.neighbor.IsSamePort(neighbor); });
  if (neighbor.ttl.count() == 0) {
    if (known == entries.end()) return;
    known->expires = std::min(known->expires, time.now + kGoodbye);
    known->sure = false;
    return;
  }
  const bool is_new = known == entries.end();
  const Entry entry{{neighbor, time.wall}, time.now + LifeOf(neighbor), true};
  if (!is_new) *known = entry;
  std::erase_if(entries, [](const Entry& one) { return !one.sure; });
  if (is_new && entries.size() < kMost) entries.push_back(entry);
}

void NeighborTable::Refresh(const std::string& device, bool hears, const Time& time) {
  const auto found = entries_.find(device);
  if (found == entries_.end()) return;
  if (hears) {
    std::erase_if(found->second, [&](const Entry& entry) { return entry.expires <= time.now; });
    return;
  }
  for (Entry& entry : found->second) {
    entry.expires = time.now + LifeOf(entry.heard.neighbor);
    entry.sure = false;
  }
}

void NeighborTable::KeepOnly(const std::set<std::string>& devices) {
  std::erase_if(entries_, [&](const auto& of_device) { return !devices.contains(of_device.first); });
}

std::vector<HeardNeighbor> NeighborTable::Of(const std::string& device) const {
  std::vector<HeardNeighbor> heard;
  const auto found = entries_.find(device);
  if (found == entries_.end()) return heard;
  for (const Entry& entry : found->second) heard.push_back(entry.heard);
  return heard;
}

}  // namespace railhead::lldp
