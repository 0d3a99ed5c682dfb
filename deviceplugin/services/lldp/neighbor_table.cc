#include "deviceplugin/services/lldp/neighbor_table.h"

#include <algorithm>

namespace railhead::lldp {
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
