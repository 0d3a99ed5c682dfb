#include "ipam/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "ipam/ledger.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

constexpr std::string_view kDirectory = "/var/lib/railhead/ipam";
constexpr std::string_view kStoreFile = "/store.mdb";
constexpr std::string_view kLockFile = "/lock";
// Longer than many processes need that sync to a slow disk one after another.
constexpr std::chrono::seconds kLockLimit{30};
// A transaction frees at most this many rested addresses unless it needs more:
// no allocation pays for a mass deletion before it.
constexpr std::size_t kWakeLimit = 32;

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

// A store with its header appears under its name in one step: a file without
// one is never ours.
Result<LmdbEnv> Create(const Root& root, const std::string& path) {
  const std::string temporary = path + ".new";
  RH_TRY(RemoveFile(temporary));
  const ClockReading now = RH_TRY(ReadClocks(root));
  {
    const LmdbEnv env = RH_TRY(LmdbEnv::Open(temporary, LmdbEnv::Mode::kCreate));
    LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env, LmdbTxn::Mode::kWrite));
    RH_TRY(txn.Put(HeaderKey(), Encode(StoreHeader{now.boot_id, now.boottime_ms, 0})));
    RH_TRY(txn.Commit());
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return FailSys(errno, "renaming to " + path);
  RH_TRY(SyncPath(root));
  return LmdbEnv::Open(path, LmdbEnv::Mode::kExisting);
}

}  // namespace

Result<ClockReading> ReadClocks(const Root& root) {
  ClockReading now;
  now.boot_id = RH_TRY(BootId(root));
  now.boottime_ms = RH_TRY(BoottimeMilliseconds());
  now.wall_seconds = static_cast<std::int64_t>(::time(nullptr));
  return now;
}

Result<AddressStore> AddressStore::Open(const Root& root) {
  const std::string directory = root.Path(kDirectory);
  const std::string path = directory + std::string(kStoreFile);
  FileLock lock = RH_TRY(FileLock::Acquire(directory + std::string(kLockFile), kLockLimit));
  LmdbEnv env =
      Exists(path) ? RH_TRY(LmdbEnv::Open(path, LmdbEnv::Mode::kExisting)) : RH_TRY(Create(root, path));
  return AddressStore(std::move(lock), std::move(env));
}

Result<std::optional<AddressStore>> AddressStore::OpenExisting(const Root& root) {
  if (!Exists(root.Path(kDirectory) + std::string(kStoreFile))) return std::nullopt;
  return RH_TRY(Open(root));
}

Result<AddressRecord> AddressStore::Allocate(const AddressOwner& owner, const AddressPool& pool,
                                             const ClockReading& now) {
  RH_TRY(CheckOwner(owner, pool.name));
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kWrite));
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  const auto owned = RH_TRY(ledger.HeldBy(owner));
  for (const AddressRecord& held : owned) {
    if (held.pool != pool.name) continue;
    if (pool.ranges.Contains(held.address)) return held;
    RH_TRY(ledger.Rest(held));
  }
  for (;;) {
    const std::size_t woken = RH_TRY(ledger.Wake(pool, kWakeLimit));
    if (auto given = RH_TRY(ledger.HoldNext(pool, owner)); given) {
      RH_TRY(ledger.Stamp());
      RH_TRY(txn.Commit());
      return std::move(*given);
    }
    if (woken == 0) return Fail(RH_TRY(ledger.Explain(pool)));
  }
}

Result<std::size_t> AddressStore::Release(const AddressOwner& owner, const ClockReading& now) {
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kWrite));
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  // A name that cannot be a key was never given an address.
  if (!CheckOwner(owner, "")) return 0;
  const auto held = RH_TRY(ledger.HeldBy(owner));
  if (held.empty()) return 0;
  for (const AddressRecord& allocation : held) RH_TRY(ledger.Rest(allocation));
  RH_TRY(ledger.Stamp());
  RH_TRY(txn.Commit());
  return held.size();
}

Result<std::vector<AddressRecord>> AddressStore::Find(const AddressOwner& owner) const {
  LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kRead));
  if (!CheckOwner(owner, "")) return std::vector<AddressRecord>{};
  const AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, ClockReading{}));
  return ledger.HeldBy(owner);
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

}  // namespace railhead
