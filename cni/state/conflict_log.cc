#include "cni/state/conflict_log.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "cni/protocol/plugin.h"
#include "cni/state/attach_log.h"
#include "cni/state/paths.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead {
namespace {

bool HasMac(const AttachedDevice& device, const MacAddress& mac) {
  return device.before.mac == mac || device.requested.vf.mac == mac;
}

// "": no pod of this node has the MAC, or its runtime did not name it.
std::string PodWith(const JournalScan& journal, const MacAddress& mac) {
  for (const JournalEntry& entry : journal.entries) {
    const bool has =
        std::ranges::any_of(entry.devices, [&](const AttachedDevice& one) { return HasMac(one, mac); });
    if (has) return PodName(entry.cni_args);
  }
  return "";
}

}  // namespace

std::chrono::milliseconds BoottimeNow() {
  timespec time{};
  (void)::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::milliseconds(time.tv_nsec / 1'000'000);
}

void LogConflict(const Root& root, const ConflictRecord& record) {
  AppendToAttachLog(root, ToJson(record));
}

std::string ConflictSource::ToString() const {
  const std::string of = pod.empty() ? " (no pod of this node)" : " (pod " + pod + ")";
  return mac.ToString() + of + " answers for " + std::to_string(addresses.size()) + " addresses, " +
         (addresses.empty() ? "none" : addresses.begin()->ToString()) + " among them";
}

Result<std::vector<ConflictSource>> ListConflictSources(const Root& root, std::chrono::milliseconds since) {
  std::map<MacAddress, ConflictSource> by_source;
  for (const ConflictRecord& record : RH_TRY(ReadConflicts(root))) {
    if (!record.ignored || record.boottime <= since) continue;
    ConflictSource& one = by_source[record.source];
    one.mac = record.source;
    one.addresses.insert(record.address);
    ++one.answers;
    one.latest = std::max(one.latest, record.boottime);
  }
  std::vector<ConflictSource> conflict_sources;
  if (by_source.empty()) return conflict_sources;
  const JournalScan journal = RH_TRY(Journal(root).Scan());
  for (auto& [source, one] : by_source) {
    one.pod = PodWith(journal, source);
    conflict_sources.push_back(std::move(one));
  }
  return conflict_sources;
}

Result<std::vector<ConflictRecord>> ReadConflicts(const Root& root) {
  std::vector<ConflictRecord> records;
  for (const char* suffix : {".1", ""}) {
    const auto text = RH_TRY(ReadFile(paths::AttachLog(root) + suffix));
    for (const auto& line : Split(text.value_or(""), '\n')) {
      // Skips lines of another kind and damaged ones.
      if (auto record = ParseRecord<ConflictRecord>(line, "attach log"))
        records.push_back(*std::move(record));
    }
  }
  return records;
}

namespace {

using Host = std::pair<MacAddress, bool>;  // and whether IPv4

}  // namespace

ConflictVerdict JudgeConflicts(const std::vector<AddressConflict>& found,
                               const std::vector<ConflictRecord>& earlier, std::chrono::milliseconds now) {
  std::map<Host, std::set<IpAddress>> addresses_of;
  std::set<std::pair<MacAddress, IpAddress>> confirmed;
  for (const ConflictRecord& record : earlier) {
    const auto age = now - record.boottime;
    if (age.count() < 0 || age > kConflictLifetime) continue;
    addresses_of[{record.source, record.address.IsV4()}].insert(record.address);
    if (age >= kConfirmAfter) confirmed.emplace(record.source, record.address);
  }
  for (const AddressConflict& one : found)
    addresses_of[{one.source, one.target.address.IsV4()}].insert(one.target.address);
  ConflictVerdict verdict;
  for (const AddressConflict& one : found) {
    const IpAddress& address = one.target.address;
    if (addresses_of[{one.source, address.IsV4()}].size() > kMaxAddressesOfHost) {
      verdict.ignored.push_back(one);
      continue;
    }
    verdict.conflicts.push_back(one);
    if (confirmed.contains({one.source, address})) verdict.confirmed.push_back(address);
  }
  return verdict;
}

}  // namespace railhead
