#include "ipam/store/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <utility>

#include "ipam/store/allocate.h"
#include "ipam/store/held_addresses.h"
#include "ipam/store/ledger.h"
#include "ipam/store/rail_part.h"
#include "ipam/store/store_errors.h"
#include "netns/base/bytes.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/base/unique_fd.h"

namespace railhead::ipam {
namespace {

constexpr std::string_view kDirectory = "/var/lib/railhead/ipam";
constexpr std::string_view kStoreFile = "/store.mdb";
constexpr std::string_view kLockFile = "/lock";
// Longer than many processes need that sync to a slow disk one after another.
constexpr std::chrono::seconds kLockLimit{30};

Result<std::uint64_t> BoottimeMilliseconds() {
  timespec time{};
  if (::clock_gettime(CLOCK_BOOTTIME, &time) != 0) return FailSys(errno, "reading the boot time clock");
  return static_cast<std::uint64_t>(time.tv_sec) * 1000 +
         static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000;
}

Result<void> SyncDirectory(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FailSys(errno, "opening directory " + path);
  if (::fsync(fd.get()) != 0) return FailSys(errno, "syncing directory " + path);
  return {};
}

// The names of the store and of the directories above it, durably.
Result<void> SyncPath(const Root& root) {
  std::string path = root.Path(kDirectory);
  for (int level = 0; level < 3; ++level) {
    RH_TRY(SyncDirectory(path));
    path.resize(path.rfind('/'));
  }
  return {};
}

// Pools begin at a random address: an earlier store of this node, as before its disk was replaced, may have
// released the first ones a moment ago. All begin at the same position, so that rails stay aligned. Below a
// root without the kernel's random numbers they begin with the first address.
std::optional<std::uint64_t> RandomStart(const Root& root) {
  constexpr std::size_t kDigits = 12;
  const auto uuid = ReadAttribute(root.Path("/proc/sys/kernel/random/uuid"));
  if (!uuid || !*uuid) return std::nullopt;
  std::string digits = **uuid;
  std::erase(digits, '-');
  std::uint64_t start = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + std::min(kDigits, digits.size()), start, 16);
  if (error != std::errc()) return std::nullopt;
  return start;
}

// A store with its header appears under its name in one step: a file without
// one is never ours.
Result<LmdbEnv> Create(const Root& root, const std::string& path, const ClockSource& clocks) {
  const std::string temporary = path + ".new";
  RH_TRY(RemoveFile(temporary));
  const ClockReading now = RH_TRY(clocks());
  {
    const LmdbEnv env = RH_TRY(LmdbEnv::Open(temporary, LmdbEnv::Mode::kCreate));
    LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env, LmdbTxn::Mode::kWrite));
    RH_TRY(txn.Put(HeaderKey(), Encode(StoreHeader{now.boot_id, now.boottime_ms, 0})));
    if (const auto start = RandomStart(root)) RH_TRY(txn.Put(StartKey(), bytes::Number(*start)));
    RH_TRY(txn.Commit());
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return FailSys(errno, "renaming to " + path);
  RH_TRY(SyncPath(root));
  return LmdbEnv::Open(path, LmdbEnv::Mode::kExisting);
}

// In a transaction of its own: the time counts although the allocation may fail.
Result<void> NoteAll(const LmdbEnv& env, const std::vector<RailPart>& parts, const ClockReading& now) {
  if (parts.empty()) return {};
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env, LmdbTxn::Mode::kWrite));
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  bool changed = false;
  for (const RailPart& part : parts) changed = RH_TRY(NotePart(txn, part, ledger.store_ms())) || changed;
  if (!changed) return {};
  RH_TRY(ledger.Stamp());
  return txn.Commit();
}

std::vector<RailPart> PartsOf(const std::vector<AddressRequest>& requests) {
  std::vector<RailPart> parts;
  for (const AddressRequest& request : requests) {
    for (const AddressPool& pool : request.pools) {
      if (pool.part) parts.push_back(*pool.part);
    }
  }
  return parts;
}

// The requests, with the addresses that may be given now.
Result<std::vector<AddressRequest>> OnlySettled(const LmdbTxn& txn, std::vector<AddressRequest> requests,
                                                std::uint64_t store_ms) {
  for (AddressRequest& request : requests) {
    for (AddressPool& pool : request.pools) RH_TRY(KeepToSettled(txn, &pool, store_ms));
  }
  return requests;
}

Result<void> NoteExhausted(const LmdbEnv& env, const AddressRequest& refused, const ClockReading& now) {
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env, LmdbTxn::Mode::kWrite));
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  RH_TRY(ledger.NoteExhausted(refused));
  RH_TRY(ledger.Stamp());
  return txn.Commit();
}

// Nothing to release, nothing to write.
Result<void> ReleaseAll(LmdbTxn& txn, AddressLedger& ledger, const std::vector<AddressRecord>& held) {
  if (held.empty()) return {};
  for (const AddressRecord& record : held) RH_TRY(ledger.Release(record));
  RH_TRY(ledger.Stamp());
  return txn.Commit();
}

// Releases the addresses of earlier boots, in a transaction of its own.
Result<std::vector<AddressRecord>> ReleaseIfNewBoot(const LmdbEnv& env, const ClockReading& now) {
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env, LmdbTxn::Mode::kWrite));
  const StoreHeader header = RH_TRY(ReadHeader(txn));
  if (header.boot_id == now.boot_id) return std::vector<AddressRecord>{};
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  auto earlier = RH_TRY(ledger.ReleaseEarlierBoots());
  RH_TRY(ledger.Stamp());
  RH_TRY(txn.Commit());
  return earlier;
}

}  // namespace

Result<ClockReading> ReadClocks(const Root& root) {
  ClockReading now;
  now.boot_id = RH_TRY(BootId(root));
  now.boottime_ms = RH_TRY(BoottimeMilliseconds());
  now.wall_seconds = static_cast<std::int64_t>(::time(nullptr));
  return now;
}

Result<AddressStore> AddressStore::Open(const Root& root, ClockSource clocks) {
  if (!clocks) clocks = [root] { return ReadClocks(root); };
  const std::string directory = root.Path(kDirectory);
  const std::string path = directory + std::string(kStoreFile);
  RH_TRY(MakeStateFolder(root, directory));
  FileLock lock = RH_TRY(FileLock::Acquire(directory + std::string(kLockFile), kLockLimit));
  LmdbEnv env = Exists(path) ? RH_TRY(LmdbEnv::Open(path, LmdbEnv::Mode::kExisting))
                             : RH_TRY(Create(root, path, clocks));
  return AddressStore(std::move(lock), std::move(env), std::move(clocks));
}

Result<std::optional<AddressStore>> AddressStore::OpenExisting(const Root& root, ClockSource clocks) {
  if (!Exists(root.Path(kDirectory) + std::string(kStoreFile))) return std::nullopt;
  return RH_TRY(Open(root, std::move(clocks)));
}

Result<void> AddressStore::CheckPlace(const Root& root) {
  RH_TRY(CheckStateFolder(root, root.Path(kDirectory)));
  std::string path = root.Path(kDirectory);
  while (!Exists(path)) {
    const std::size_t slash = path.rfind('/');
    if (slash == 0 || slash == std::string::npos) {
      path = slash == 0 ? "/" : ".";
      break;
    }
    path.resize(slash);
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    return FailSys(errno, "making the address store " + root.Path(kDirectory) + ": writing to " + path);
  }
  return {};
}

Result<std::vector<AddressRecord>> AddressStore::ReleaseEarlierBoots() {
  const ClockReading now = RH_TRY(clocks_());
  return ReleaseIfNewBoot(env_, now);
}

Result<AddressRecord> AddressStore::Quarantine(const AddressOwner& owner, const IpAddress& address,
                                               std::chrono::seconds time) {
  const ClockReading now = RH_TRY(clocks_());
  RH_TRY(ReleaseIfNewBoot(env_, now));
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kWrite));
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  RH_TRY(CheckOwner(owner, ""));
  const auto owned = RH_TRY(ledger.HeldByAttachment(owner));
  for (const AddressRecord& held : owned) {
    if (held.address != address) continue;
    AddressRecord apart = RH_TRY(ledger.Quarantine(held, time));
    RH_TRY(ledger.Stamp());
    RH_TRY(txn.Commit());
    return apart;
  }
  return Fail(ErrorCode::kNotFound,
              "address " + address.ToString() + " is not held by container " + owner.container +
                  ", interface " + owner.ifname + ", network " + owner.network + ": not put into quarantine",
              "it has been released since: nothing is left to do");
}

Result<bool> AddressStore::QuarantineWithin(const AddressPool& pool, const AddressOwner& owner,
                                            const IpAddress& address, std::chrono::seconds time) {
  {
    const ClockReading now = RH_TRY(clocks_());
    LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kRead));
    const AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
    if (!RH_TRY(ledger.MayQuarantine(pool))) return false;
  }
  RH_TRY(Quarantine(owner, address, time));
  return true;
}

Result<std::vector<AddressRecord>> AddressStore::Allocate(const std::vector<AddressRequest>& requests) {
  const ClockReading now = RH_TRY(clocks_());
  RH_TRY(ReleaseIfNewBoot(env_, now));
  RH_TRY(NoteAll(env_, PartsOf(requests), now));
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kWrite));
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  const auto settled = RH_TRY(OnlySettled(txn, requests, ledger.store_ms()));
  const AddressRequest* refused = nullptr;
  auto result = AllocateAll(ledger, settled, &refused);
  if (!result) {
    // Only the event is kept. The caller gets the reason even if that cannot be written.
    txn.Abort();
    if (refused != nullptr) (void)NoteExhausted(env_, *refused, now);
    return Fail(std::move(result.error()));
  }
  // The owners held the addresses already: nothing to write.
  if (!result->changed) return std::move(result->records);
  RH_TRY(ledger.Stamp());
  RH_TRY(txn.Commit());
  return std::move(result->records);
}

Result<void> AddressStore::NoteParts(const std::vector<RailPart>& parts) {
  return NoteAll(env_, parts, RH_TRY(clocks_()));
}

Result<AddressRecord> AddressStore::Allocate(const AddressOwner& owner, const AddressPool& pool) {
  auto records = RH_TRY(Allocate({AddressRequest{owner, {pool}, {}}}));
  return std::move(records.front());
}

Result<void> AddressStore::TryAllocate(const std::vector<AddressRequest>& requests) {
  const ClockReading now = RH_TRY(clocks_());
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kWrite));
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  const StoreHeader header = RH_TRY(ReadHeader(txn));
  if (header.boot_id != now.boot_id) RH_TRY(ledger.ReleaseEarlierBoots());
  const auto settled = RH_TRY(OnlySettled(txn, requests, ledger.store_ms()));
  RH_TRY(AllocateAll(ledger, settled, nullptr));
  return {};
}

Result<std::size_t> AddressStore::Release(const AddressOwner& owner) {
  const ClockReading now = RH_TRY(clocks_());
  const auto earlier = RH_TRY(ReleaseIfNewBoot(env_, now));
  const auto of_earlier = std::ranges::count_if(earlier, [&](const AddressRecord& record) {
    return record.owner.network == owner.network && record.owner.container == owner.container &&
           AttachmentIfname(record.owner) == owner.ifname;
  });
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kWrite));
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  // A name that cannot be a key has no address.
  if (!CheckOwner(owner, "")) return 0;
  const auto held = RH_TRY(ledger.HeldByAttachment(owner));
  RH_TRY(ReleaseAll(txn, ledger, held));
  return held.size() + static_cast<std::size_t>(of_earlier);
}

Result<std::vector<AddressRecord>> AddressStore::ReleaseWhere(const AddressFilter& filter) {
  const ClockReading now = RH_TRY(clocks_());
  auto released = RH_TRY(ReleaseIfNewBoot(env_, now));
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kWrite));
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  auto held = RH_TRY(ledger.AllHeld());
  std::erase_if(held, [&](const AddressRecord& record) { return !filter(record); });
  RH_TRY(ReleaseAll(txn, ledger, held));
  std::erase_if(released, [&](const AddressRecord& record) { return !filter(record); });
  released.insert(released.end(), held.begin(), held.end());
  return released;
}

Result<std::vector<AddressRecord>> AddressStore::Find(const AddressOwner& owner) const {
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kRead));
  if (!CheckOwner(owner, "")) return std::vector<AddressRecord>{};
  const AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, ClockReading{}));
  return ledger.HeldByAttachment(owner);
}

Result<std::map<std::string, PoolCounters>> AddressStore::Counters() const {
  const LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kRead));
  return ReadCounters(txn);
}

Result<std::vector<AddressEvent>> AddressStore::Events(std::uint64_t after) const {
  const LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kRead));
  return ReadEvents(txn, after);
}

Result<void> AddressStore::Transact(const Change& change) {
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kWrite));
  RH_TRY(ReadHeader(txn));
  const ClockReading now = RH_TRY(clocks_());
  if (RH_TRY(change(txn, now))) return txn.Commit();
  return {};
}

Result<StoreMoment> AddressStore::Now() const {
  const LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kRead));
  const StoreHeader header = RH_TRY(ReadHeader(txn));
  StoreMoment moment;
  moment.clocks = RH_TRY(clocks_());
  moment.store_ms = header.StoreTime(moment.clocks);
  return moment;
}

Result<std::vector<AddressRecord>> AddressStore::List() const {
  const LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kRead));
  RH_TRY(ReadHeader(txn));
  const auto entries = RH_TRY(txn.Under(AllAddressesPrefix()));
  std::vector<AddressRecord> all;
  all.reserve(entries.size());
  for (const KeyValue& entry : entries) all.push_back(RH_TRY(DecodeRecord(entry.key, entry.value)));
  return all;
}

}  // namespace railhead::ipam
