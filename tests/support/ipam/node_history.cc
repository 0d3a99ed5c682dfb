#include "tests/support/ipam/node_history.h"

#include <iterator>
#include <set>

namespace railhead::testing {
namespace {

constexpr std::uint64_t kReuseDelayMs = 600'000;
constexpr std::uint64_t kMsPerSecond = 1000;
constexpr std::uint64_t kMostUptimeMs = 120'000;
constexpr std::uint64_t kShortMs = 2'000;
constexpr std::uint64_t kLongMs = 3 * kReuseDelayMs;

Error Differs(const std::string& what) {
  return {ErrorCode::kConflict, what, "", 0};
}

}  // namespace

NodeHistory::NodeHistory(Root root, std::uint64_t seed, std::size_t rails, std::size_t pods)
    : root_(std::move(root)), pods_(pods), random_(seed) {
  for (std::size_t rail = 0; rail < rails; ++rail)
    rails_.push_back(MakePool("10." + std::to_string(rail) + ".0.0/20", {}, kReuseDelayMs / kMsPerSecond));
}

// A runtime's ids are random, so entries are spread over the whole tree.
int NodeHistory::NewPod() {
  std::string id;
  while (id.size() < 64) id += "0123456789abcdef"[Below(16)];
  containers_.push_back(std::move(id));
  return static_cast<int>(containers_.size()) - 1;
}

int NodeHistory::AnyPod() {
  if (held_.empty() || Below(8) == 0) return static_cast<int>(Below(containers_.size()));
  return std::next(held_.begin(), static_cast<std::ptrdiff_t>(Below(held_.size())))->first;
}

ipam::AddressOwner NodeHistory::OwnerOf(int pod, std::size_t rail) const {
  const ipam::AddressOwner owner{"net0", containers_.at(static_cast<std::size_t>(pod)), "eth1"};
  return rail == rails_.size() ? owner : LinkOwner(owner, "rail" + std::to_string(rail));
}

ipam::ClockReading NodeHistory::Now() const {
  return {"boot-" + std::to_string(boot_), uptime_ms_, 1'700'000'000};
}

Result<void> NodeHistory::Boot(int operations) {
  ++boot_;
  before_boot_ms_ = committed_ms_;
  uptime_ms_ = Below(kMostUptimeMs);
  std::vector<int> starting;
  for (const auto& [pod, holding] : held_) {
    if (Below(4) == 0) starting.push_back(pod);
  }
  while (starting.size() < pods_) starting.push_back(NewPod());
  for (const int pod : starting) RH_TRY(Step([&](StoreAt& store) { return Add(store, pod); }));
  for (int i = 0; i < operations; ++i) RH_TRY(Step([&](StoreAt& store) { return Operate(store); }));
  return {};
}

Result<void> NodeHistory::Step(const std::function<Result<void>(StoreAt&)>& operation) {
  const std::string where = "boot " + std::to_string(boot_) + ", operation " + std::to_string(++operations_);
  {
    StoreAt store = RH_TRY_WRAP(StoreAt::Open(root_), where);
    RH_TRY_WRAP(operation(store), where);
  }
  // Pods come in bursts, with long pauses between them.
  uptime_ms_ += Below(8) == 0 ? Below(kLongMs) : Below(kShortMs);
  return WithContext(Compare(), "behind " + where);
}

Result<void> NodeHistory::Operate(StoreAt& store) {
  const auto choice = Below(16);
  if (choice == 0) return Collect(store);
  if (choice <= 6) return Delete(store, AnyPod(), choice == 1);
  return Add(store, held_.size() < pods_ ? NewPod() : AnyPod());
}

void NodeHistory::StartReuseDelay(int pod, std::uint64_t ms) {
  for (std::size_t rail = 0; rail < rails_.size(); ++rail)
    until_ms_[{rail, held_[pod][rail]}] = store_ms() + ms;
}

void NodeHistory::EnterBoot() {
  if (entered_ == boot_) return;
  entered_ = boot_;
  for (const auto& [pod, holding] : held_) {
    StartReuseDelay(pod, kReuseDelayMs);
    had_[pod] = holding;
  }
  held_.clear();
  Committed();
}

Result<void> NodeHistory::Add(StoreAt& store, int pod) {
  EnterBoot();
  std::vector<ipam::AddressRequest> requests;
  for (std::size_t rail = 0; rail < rails_.size(); ++rail)
    requests.push_back({OwnerOf(pod, rail), {rails_[rail]}, {}, true});
  const auto records = RH_TRY(store.Allocate(requests, Now()));
  Holding given;
  for (const ipam::AddressRecord& record : records) given.push_back(record.address);
  if (const auto held = held_.find(pod); held != held_.end()) {
    if (held->second != given) return Fail(Differs("a pod got other addresses than it holds"));
    return {};
  }
  RH_TRY(CheckNew(pod, given));
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) until_ms_.erase({rail, given[rail]});
  held_[pod] = std::move(given);
  had_.erase(pod);
  Committed();
  return {};
}

Result<void> NodeHistory::CheckNew(int pod, const Holding& given) const {
  const auto had = had_.find(pod);
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    const IpAddress& address = given.at(rail);
    for (const auto& [other, holding] : held_) {
      if (holding[rail] == address) return Fail(Differs(address.ToString() + " was given twice"));
    }
    const auto until = until_ms_.find({rail, address});
    const bool again = had != had_.end() && had->second[rail] == address;
    if (until != until_ms_.end() && store_ms() < until->second && !again)
      return Fail(Differs(address.ToString() + " was given too early"));
  }
  return {};
}

Result<void> NodeHistory::Delete(StoreAt& store, int pod, bool in_use) {
  const bool was_held = held_.contains(pod);
  EnterBoot();
  const auto held = held_.find(pod);
  const bool quarantine = in_use && held != held_.end();
  if (quarantine) RH_TRY(store.Quarantine(OwnerOf(pod, 0), held->second.front(), Now()));
  const std::size_t released = RH_TRY(store.Release(OwnerOf(pod, rails_.size()), Now()));
  if (released != (was_held ? rails_.size() - (quarantine ? 1 : 0) : 0))
    return Fail(Differs("DEL released " + std::to_string(released)));
  if (held == held_.end()) return {};
  StartReuseDelay(pod, kReuseDelayMs);
  if (quarantine) {
    const auto quarantine_ms = static_cast<std::uint64_t>(ipam::kDefaultQuarantine.count()) * kMsPerSecond;
    until_ms_[{0, held->second.front()}] = store_ms() + quarantine_ms;
  }
  held_.erase(held);
  Committed();
  return {};
}

// GC after a third of the pods has gone.
Result<void> NodeHistory::Collect(StoreAt& store) {
  EnterBoot();
  std::set<std::string> gone;
  for (const auto& [pod, holding] : held_) {
    if (Below(3) == 0) gone.insert(OwnerOf(pod, 0).container);
  }
  RH_TRY(store.ReleaseWhere(
      [&](const ipam::AddressRecord& record) { return gone.contains(record.owner.container); }, Now()));
  for (auto held = held_.begin(); held != held_.end();) {
    if (!gone.contains(OwnerOf(held->first, 0).container)) {
      ++held;
      continue;
    }
    StartReuseDelay(held->first, kReuseDelayMs);
    held = held_.erase(held);
    Committed();
  }
  return {};
}

// Opens the store again and compares its content with the model.
Result<void> NodeHistory::Compare() const {
  const StoreAt store = RH_TRY(StoreAt::Open(root_));
  const auto records = RH_TRY(store.List());
  std::set<std::string> wanted;
  std::set<std::string> found;
  for (const ipam::AddressRecord& record : records) {
    if (record.state == ipam::AddressState::kHeld)
      found.insert(record.owner.container + "/" + record.owner.ifname + " " + record.address.ToString());
  }
  for (const auto& [pod, holding] : held_) {
    for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
      const ipam::AddressOwner owner = OwnerOf(pod, rail);
      wanted.insert(owner.container + "/" + owner.ifname + " " + holding[rail].ToString());
    }
  }
  if (found != wanted) return Fail(Differs("the store holds other addresses than the model"));
  return {};
}

}  // namespace railhead::testing
