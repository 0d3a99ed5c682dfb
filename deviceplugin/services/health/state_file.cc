#include "deviceplugin/services/health/state_file.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "netns/json/record_io.h"

template struct railhead::StateFile<railhead::health::HealthState>;

namespace railhead::health {
namespace {

// Cuts the time to what the file stores, so that reading it gives the same time.
std::chrono::system_clock::time_point WholeSeconds(std::chrono::system_clock::time_point time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

// Whether the change has only the PF's faults, which began or ended.
bool IsOfPf(const HealthChange& change) {
  if (!change.is_vf) return false;
  const auto of_pf = [&](const HealthReason& reason) { return reason.device == change.pf; };
  return std::ranges::all_of(change.started, of_pf) && std::ranges::all_of(change.ended, of_pf);
}

bool IsSame(const HealthRecord& record, const HealthChange& change) {
  return record.device == (change.is_vf ? change.pf : change.device) && record.healthy == change.healthy &&
         record.time == WholeSeconds(change.time) && record.started == change.started &&
         record.ended == change.ended;
}

}  // namespace

std::vector<HealthRecord> RecordsOf(const std::vector<HealthChange>& changes) {
  std::vector<HealthRecord> records;
  for (const HealthChange& change : changes) {
    const bool of_pf = IsOfPf(change);
    if (of_pf) {
      const auto same =
          std::ranges::find_if(records, [&](const HealthRecord& record) { return IsSame(record, change); });
      if (same != records.end()) {
        ++same->vfs;
        continue;
      }
    }
    records.push_back({WholeSeconds(change.time), of_pf ? change.pf : change.device, !of_pf,
                       of_pf ? std::size_t{1} : std::size_t{0}, change.healthy, change.started,
                       change.ended});
  }
  return records;
}

void AppendHistory(const std::vector<HealthChange>& changes, std::vector<HealthRecord>* history) {
  auto records = RecordsOf(changes);
  std::move(records.begin(), records.end(), std::back_inserter(*history));
  if (history->size() > kHealthHistory) {
    history->erase(history->begin(), history->end() - static_cast<std::ptrdiff_t>(kHealthHistory));
  }
}

std::string TextOf(const std::vector<HealthReason>& reasons) {
  std::string text;
  for (const HealthReason& reason : reasons) {
    if (!text.empty()) text += "; ";
    text.append(NameOf(reason.rule)).append(": ").append(reason.text);
  }
  return text;
}

std::string WhoOf(const HealthRecord& record) {
  const std::string vfs =
      record.vfs == 0 ? "" : std::to_string(record.vfs) + (record.vfs == 1 ? " VF" : " VFs");
  if (vfs.empty()) return record.device;
  return record.itself ? record.device + " and " + vfs : vfs + " of " + record.device;
}

std::string WhatOf(const HealthRecord& record) {
  std::string text = TextOf(record.started);
  if (!record.ended.empty())
    text.append(text.empty() ? "" : "; ").append("over: ").append(TextOf(record.ended));
  return text;
}

}  // namespace railhead::health
