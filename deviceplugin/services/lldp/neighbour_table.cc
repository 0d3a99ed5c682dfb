#include "deviceplugin/services/lldp/neighbour_table.h"

#include <algorithm>

namespace railhead {
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
  const auto known = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.heard.neighbour.IsSamePort(neighbour);
  });
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

}  // namespace railhead
