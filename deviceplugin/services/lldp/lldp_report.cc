#include "deviceplugin/services/lldp/lldp_report.h"

#include <algorithm>
#include <utility>

#include "netns/json/record_io.h"

template struct railhead::StateFile<railhead::lldp::LeafReport>;

namespace railhead::lldp {
const RailLeaf* LeafReport::Find(const std::string& rail) const {
  const auto found = std::ranges::find(rails, rail, &RailLeaf::rail);
  return found == rails.end() ? nullptr : &*found;
}

bool SaysTheSame(const LeafReport& a, const LeafReport& b) {
  return a.node == b.node && std::equal(a.rails.begin(), a.rails.end(), b.rails.begin(), b.rails.end(),
                                        [](RailLeaf one, RailLeaf other) {
                                          for (RailLeaf* rail : {&one, &other}) {
                                            if (rail->neighbour) rail->neighbour->heard = {};
                                          }
                                          return one == other;
                                        });
}

std::string CablingOf(const RailLeaf& rail) {
  std::string text(WordOf(rail.cabling));
  if (!rail.because.empty()) text += ": " + rail.because;
  if (rail.neighbour && !rail.carrier) text += " (no carrier)";
  for (const std::string& other : rail.others) text += "; also heard: " + other;
  return text;
}

Result<LeafReport> ParseLeafReport(std::string_view text, const std::string& what) {
  return ParseRecord<LeafReport>(text, what);
}

namespace {

std::chrono::seconds LifeOf(const LldpNeighbour& neighbour) {
  return std::min(neighbour.ttl, NeighbourTable::kLongest);
}

}  // namespace

void NeighbourTable::Restore(const std::string& device, const HeardNeighbour& heard, const Time& time) {
  entries_[device] = {{heard, time.now + LifeOf(heard.neighbour), false}};
}

void NeighbourTable::Hear(const std::string& device, const LldpNeighbour& neighbour, const Time& time) {
  std::vector<Entry>& entries = entries_[device];
  const auto known = std::ranges::find_if(
      entries, [&](const Entry& entry) { return entry.heard.neighbour.IsSamePort(neighbour); });
  if (neighbour.ttl.count() == 0) {
    if (known == entries.end()) return;
    known->expires = std::min(known->expires, time.now + kGoodbye);
    known->sure = false;
    return;
  }
  const bool is_new = known == entries.end();
  const Entry entry{{neighbour, time.wall}, time.now + LifeOf(neighbour), true};
  if (!is_new) *known = entry;
  std::erase_if(entries, [](const Entry& one) { return !one.sure; });
  if (is_new && entries.size() < kMost) entries.push_back(entry);
}

void NeighbourTable::Tend(const std::string& device, bool hears, const Time& time) {
  const auto found = entries_.find(device);
  if (found == entries_.end()) return;
  if (hears) {
    std::erase_if(found->second, [&](const Entry& entry) { return entry.expires <= time.now; });
    return;
  }
  for (Entry& entry : found->second) {
    entry.expires = time.now + LifeOf(entry.heard.neighbour);
    entry.sure = false;
  }
}

void NeighbourTable::KeepOnly(const std::set<std::string>& devices) {
  std::erase_if(entries_, [&](const auto& of_device) { return !devices.contains(of_device.first); });
}

std::vector<HeardNeighbour> NeighbourTable::Of(const std::string& device) const {
  std::vector<HeardNeighbour> heard;
  const auto found = entries_.find(device);
  if (found == entries_.end()) return heard;
  for (const Entry& entry : found->second) heard.push_back(entry.heard);
  return heard;
}

}  // namespace railhead::lldp
