#include "ipam/store/allocate.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "ipam/store/store_errors.h"
#include "netns/base/text.h"

namespace railhead::ipam {
namespace {

// A transaction frees at most this many addresses whose reuse delay is over, unless it needs more. So an
// allocation does not pay for an earlier mass deletion.
constexpr std::size_t kFreeLimit = 32;

// Whether the owner may keep what it holds of `pool`.
bool Fits(const AddressRequest& request, const AddressPool& pool, const AddressRecord& held) {
  if (request.fixed_address) return held.address == *request.fixed_address;
  return pool.ranges.Contains(held.address);
}

// The address that the owner holds already. Its other addresses of the request's pools are released.
Result<std::optional<AddressRecord>> KeepHeld(AddressLedger& ledger, const AddressRequest& request,
                                              bool& changed) {
  std::optional<AddressRecord> kept;
  auto owned = RH_TRY(ledger.HeldBy(request.owner));
  for (AddressRecord& held : owned) {
    const auto pool = std::ranges::find(request.pools, held.pool, &AddressPool::name);
    if (pool == request.pools.end()) continue;
    if (!kept && Fits(request, *pool, held)) {
      kept = std::move(held);
    } else {
      RH_TRY(ledger.Release(held));
      changed = true;
    }
  }
  return kept;
}

// The owner's address of before a reboot: some runtimes start the same containers again.
Result<std::optional<AddressRecord>> AllocatePrevious(AddressLedger& ledger, const AddressRequest& request) {
  for (const AddressPool& pool : request.pools) {
    const auto previous = RH_TRY(ledger.FindPrevious(pool, request.owner));
    if (previous && Fits(request, pool, *previous)) return RH_TRY(ledger.AllocatePrevious(pool, *previous));
  }
  return std::nullopt;
}

Result<AddressRecord> AllocateFixed(AddressLedger& ledger, const AddressRequest& request,
                                    const IpAddress& address) {
  for (const AddressPool& pool : request.pools) {
    if (!pool.ranges.Contains(address)) continue;
    RH_TRY(ledger.FreeExpired(pool, kFreeLimit));
    return ledger.AllocateSpecific(pool, request.owner, address);
  }
  // The configuration was checked; a claimed index may have changed since.
  return Fail(ErrorCode::kBusy,
              "address " + address.ToString() +
                  " is outside of the ranges that this node may allocate from: " +
                  request.pools.front().ranges.ToString() + " of " + request.pools.front().name,
              "request another address, or run the pod on the node whose part has it");
}

Result<std::optional<AddressRecord>> AllocateNextOf(AddressLedger& ledger, const AddressPool& pool,
                                                    const AddressOwner& owner) {
  for (;;) {
    const std::size_t freed = RH_TRY(ledger.FreeExpired(pool, kFreeLimit));
    if (auto next = RH_TRY(ledger.AllocateNext(pool, owner)); next) return next;
    if (freed == 0) return std::nullopt;
  }
}

Result<AddressRecord> AllocateNew(AddressLedger& ledger, const AddressRequest& request) {
  if (request.fixed_address) return AllocateFixed(ledger, request, *request.fixed_address);
  for (const AddressPool& pool : request.pools) {
    if (auto next = RH_TRY(AllocateNextOf(ledger, pool, request.owner)); next) return std::move(*next);
  }
  for (const AddressPool& pool : request.pools) {
    if (auto again = RH_TRY(ledger.AllocateToLastDevice(pool, request)); again) return std::move(*again);
    if (auto early = RH_TRY(ledger.AllocateFromReuseDelay(pool, request.owner)); early)
      return std::move(*early);
  }
  Error error = RH_TRY(ledger.Explain(request.pools.front()));
  for (std::size_t i = 1; i < request.pools.size(); ++i) {
    error.message += "; " + RH_TRY(ledger.Explain(request.pools[i])).message;
  }
  return Fail(std::move(error));
}

// Puts the request's link in front of an error.
template <typename T>
Result<T> WithLink(const AddressRequest& request, Result<T> result) {
  const std::string_view link = LinkName(request.owner);
  if (result || link.empty()) return result;
  return Fail(Wrap(std::move(result.error()), link));
}

// The requests of one Allocate(), and the addresses allocated for them so far.
class AllocationSession {
 public:
  AllocationSession(AddressLedger& ledger, const std::vector<AddressRequest>& requests)
      : ledger_(ledger), requests_(requests), allocated_(requests.size()) {}

  Result<void> KeepAllHeld() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      for (const AddressPool& pool : requests_[i].pools) {
        RH_TRY(WithLink(requests_[i], CheckOwner(requests_[i].owner, pool.name)));
      }
      allocated_[i] = RH_TRY(WithLink(requests_[i], KeepHeld(ledger_, requests_[i], changed_)));
      if (allocated_[i]) continue;
      allocated_[i] = RH_TRY(WithLink(requests_[i], AllocatePrevious(ledger_, requests_[i])));
      if (allocated_[i]) RH_TRY(ledger_.NoteDevice(requests_[i], *allocated_[i]));
      changed_ = true;
    }
    return {};
  }
  // For the requests without an address that `which` selects, in their order.
  template <typename Which>
  Result<void> AllocateEach(const Which& which) {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (allocated_[i] || !which(requests_[i])) continue;
      auto held = AllocateNew(ledger_, requests_[i]);
      if (!held && held.error().code == ErrorCode::kExhausted) refused_ = &requests_[i];
      allocated_[i] = RH_TRY(WithLink(requests_[i], std::move(held)));
      RH_TRY(ledger_.NoteDevice(requests_[i], *allocated_[i]));
      changed_ = true;
    }
    return {};
  }
  // Two devices of each rail are two groups.
  Result<void> AllocateAlignedGroups() {
    std::vector<bool> tried(requests_.size(), false);
    for (;;) {
      const std::vector<std::size_t> group = NextGroup(tried);
      if (group.empty()) return {};
      if (group.size() > 1) RH_TRY(AllocateGroup(group));
    }
  }
  // The request whose pools have no address.
  [[nodiscard]] const AddressRequest* refused() const { return refused_; }
  AllocationResult Finish() {
    AllocationResult result;
    result.changed = changed_;
    for (auto& record : allocated_) result.records.push_back(std::move(*record));
    return result;
  }

 private:
  [[nodiscard]] bool CanBeAligned(std::size_t i) const {
    return !allocated_[i] && requests_[i].aligned && requests_[i].pools.size() == 1;
  }
  // The first request of each pool that is not in a group yet. All of them have one address family.
  [[nodiscard]] std::vector<std::size_t> NextGroup(std::vector<bool>& tried) const {
    std::vector<std::size_t> group;
    std::set<std::string_view> pools;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (tried[i] || !CanBeAligned(i)) continue;
      const AddressPool& pool = requests_[i].pools.front();
      const bool same_family =
          group.empty() || requests_[group.front()].pools.front().ranges.subnet().address.IsV4() ==
                               pool.ranges.subnet().address.IsV4();
      if (!same_family || !pools.insert(pool.name).second) continue;
      tried[i] = true;
      group.push_back(i);
    }
    return group;
  }
  Result<void> AllocateGroup(const std::vector<std::size_t>& group) {
    std::vector<const AddressRequest*> requests;
    for (const std::size_t i : group) {
      RH_TRY(ledger_.FreeExpired(requests_[i].pools.front(), kFreeLimit));
      requests.push_back(&requests_[i]);
    }
    auto held = RH_TRY(ledger_.AllocateAligned(requests));
    if (!held) return {};
    for (std::size_t i = 0; i < group.size(); ++i) {
      RH_TRY(ledger_.NoteDevice(requests_[group[i]], (*held)[i]));
      allocated_[group[i]] = std::move((*held)[i]);
    }
    changed_ = true;
    return {};
  }

  AddressLedger& ledger_;
  const std::vector<AddressRequest>& requests_;
  std::vector<std::optional<AddressRecord>> allocated_;  // one for each request
  bool changed_ = false;
  const AddressRequest* refused_ = nullptr;
};

}  // namespace

Result<AllocationResult> AllocateAll(AddressLedger& ledger, const std::vector<AddressRequest>& requests,
                                     const AddressRequest** refused) {
  AllocationSession session(ledger, requests);
  RH_TRY(session.KeepAllHeld());
  // First: another request could get a fixed address otherwise.
  RH_TRY(
      session.AllocateEach([](const AddressRequest& request) { return request.fixed_address.has_value(); }));
  RH_TRY(session.AllocateAlignedGroups());
  auto done = session.AllocateEach([](const AddressRequest&) { return true; });
  if (done) return session.Finish();
  if (refused != nullptr) *refused = session.refused();
  return Fail(std::move(done.error()));
}

}  // namespace railhead::ipam
