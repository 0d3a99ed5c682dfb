#include "cni/state/conflict_log.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "cni/protocol/cni_args.h"
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
  std::string who = mac.ToString() + (pod.empty() ? " (no pod of this node)" : " (pod " + pod + ")");
  if (!pf.empty()) who = std::to_string(hosts) + " hosts on PF " + pf + ", " + who + " among them,";
  return who + (pf.empty() ? " answers" : " answer") + " for " + std::to_string(addresses.size()) +
         " addresses, " + (addresses.empty() ? "none" : addresses.begin()->ToString()) + " among them";
}

Result<std::vector<ConflictSource>> ListConflictSources(const Root& root, std::chrono::milliseconds since) {
  // By the PF of a crowd, or by the one host.
  std::map<std::pair<std::string, MacAddress>, ConflictSource> found;
  std::map<std::string, std::set<MacAddress>> crowds;
  for (const ConflictRecord& record : RH_TRY(ReadConflicts(root))) {
    if (!record.ignored || record.boottime <= since) continue;
    const std::string pf = record.crowd ? record.pf : "";
    ConflictSource& one = found[{pf, record.crowd ? MacAddress{} : record.source}];
    one.mac = record.source;
    one.pf = pf;
    if (record.crowd) {
      crowds[pf].insert(record.source);
      one.hosts = crowds[pf].size();
    }
    one.addresses.insert(record.address);
    ++one.answers;
    one.latest = std::max(one.latest, record.boottime);
  }
  std::vector<ConflictSource> conflict_sources;
  if (found.empty()) return conflict_sources;
  const JournalScan journal = RH_TRY(Journal(root).Scan());
  for (auto& [key, one] : found) {
    one.pod = PodWith(journal, one.mac);
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

std::vector<IpAddress> JudgeConflicts(const std::vector<ConflictRecord>& earlier,
                                      std::vector<ConflictRecord>* found) {
  std::vector<IpAddress> in_use;
  if (found->empty()) return in_use;
  std::map<Host, std::set<IpAddress>> addresses_of;
  std::map<std::string, std::set<MacAddress>> hosts_on;
  std::set<std::pair<MacAddress, IpAddress>> confirmed;
  const auto count = [&](const ConflictRecord& record) {
    addresses_of[{record.source, record.address.IsV4()}].insert(record.address);
    hosts_on[record.pf].insert(record.source);
  };
  for (const ConflictRecord& one : *found) count(one);
  for (const ConflictRecord& record : earlier) {
    const auto age = found->front().boottime - record.boottime;
    if (age.count() < 0 || age > kConflictLifetime) continue;
    count(record);
    if (age >= kConfirmAfter) confirmed.emplace(record.source, record.address);
  }
  for (ConflictRecord& one : *found) {
    one.crowd = hosts_on[one.pf].size() > kMaxHostsOfPf;
    one.ignored = one.crowd || addresses_of[{one.source, one.address.IsV4()}].size() > kMaxAddressesOfHost;
    if (!one.ignored && confirmed.contains({one.source, one.address})) in_use.push_back(one.address);
  }
  return in_use;
}

}  // namespace railhead
