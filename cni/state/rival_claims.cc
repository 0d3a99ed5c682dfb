#include "cni/state/rival_claims.h"

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
  return device.before.mac == mac || device.wanted.vf.mac == mac;
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

void LogRivalClaim(const Root& root, const RivalClaim& claim) {
  AppendToAttachLog(root, ToJson(claim));
}

std::string Claimant::ToString() const {
  const std::string of = pod.empty() ? " (no pod of this node)" : " (pod " + pod + ")";
  return source.ToString() + of + " claims " + std::to_string(addresses.size()) + " addresses, " +
         (addresses.empty() ? "none" : addresses.begin()->ToString()) + " among them";
}

Result<std::vector<Claimant>> ListClaimants(const Root& root, std::chrono::milliseconds since) {
  std::map<MacAddress, Claimant> by_source;
  for (const RivalClaim& claim : RH_TRY(ReadRivalClaims(root))) {
    if (!claim.ignored || claim.boottime <= since) continue;
    Claimant& one = by_source[claim.source];
    one.source = claim.source;
    one.addresses.insert(claim.address);
    ++one.claims;
    one.latest = std::max(one.latest, claim.boottime);
  }
  std::vector<Claimant> claimants;
  if (by_source.empty()) return claimants;
  const JournalScan journal = RH_TRY(Journal(root).Scan());
  for (auto& [source, one] : by_source) {
    one.pod = PodWith(journal, source);
    claimants.push_back(std::move(one));
  }
  return claimants;
}

Result<std::vector<RivalClaim>> ReadRivalClaims(const Root& root) {
  std::vector<RivalClaim> claims;
  for (const char* suffix : {".1", ""}) {
    const auto text = RH_TRY(ReadFile(paths::AttachLog(root) + suffix));
    for (const auto& line : Split(text.value_or(""), '\n')) {
      // A line of another kind, or a damaged one, is passed over.
      if (auto claim = ParseRecord<RivalClaim>(line, "attach log")) claims.push_back(*std::move(claim));
    }
  }
  return claims;
}

namespace {

using Station = std::pair<MacAddress, bool>;  // and whether IPv4

}  // namespace

ConflictVerdict JudgeConflicts(const std::vector<AddressConflict>& found,
                               const std::vector<RivalClaim>& earlier, std::chrono::milliseconds now) {
  std::map<Station, std::set<IpAddress>> claimed;
  std::set<std::pair<MacAddress, IpAddress>> confirmed;
  for (const RivalClaim& claim : earlier) {
    const auto age = now - claim.boottime;
    if (age.count() < 0 || age > kClaimCounts) continue;
    claimed[{claim.source, claim.address.IsV4()}].insert(claim.address);
    if (age >= kClaimConfirms) confirmed.emplace(claim.source, claim.address);
  }
  for (const AddressConflict& one : found)
    claimed[{one.source, one.claim.address.IsV4()}].insert(one.claim.address);
  ConflictVerdict verdict;
  for (const AddressConflict& one : found) {
    const IpAddress& address = one.claim.address;
    if (claimed[{one.source, address.IsV4()}].size() > kMostAddressesOfStation) {
      verdict.ignored.push_back(one);
      continue;
    }
    verdict.conflicts.push_back(one);
    if (confirmed.contains({one.source, address})) verdict.confirmed.push_back(address);
  }
  return verdict;
}

}  // namespace railhead
