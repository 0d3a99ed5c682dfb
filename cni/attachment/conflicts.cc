#include "cni/attachment/conflicts.h"

#include <map>
#include <set>
#include <utility>

namespace railhead::attachment {
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

}  // namespace railhead::attachment
