#include "ipam/store/lmdb.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace railhead::ipam {
namespace {

constexpr mode_t kFileMode = 0600;

Error Damaged(const std::string& path, const std::string& why) {
  return {ErrorCode::kIo, "address store " + path + " is damaged or not an address store: " + why,
          "restore " + path + " from a backup; or, when no container on this node has an address from it, " +
              "move it away, and the next ADD makes a new one",
          0};
}

Error LmdbError(int rc, const std::string& path, std::string_view what) {
  if (rc > 0) {
    Error error = SysError(rc, std::string(what) + " address store " + path);
    if (rc == ENOSPC || rc == EDQUOT) error.hint = "free space on the file system; nothing was changed";
    if (rc == EROFS) error.hint = "the file system must be writable";
    return error;
  }
  if (rc == MDB_MAP_FULL) {
    return {ErrorCode::kExhausted,
            std::string(what) + " address store " + path + ": larger than " +
                std::to_string(kStoreSize >> 20) + " MiB",
            "release unused addresses", 0};
  }
  if (rc == MDB_BAD_VALSIZE) {
    return {ErrorCode::kInvalid, std::string(what) + " address store " + path + ": key too long", "", 0};
  }
  return Damaged(path, std::string(what) + ": " + mdb_strerror(rc));
}

// LMDB does not change its input; its C interface has no const.
MDB_val ValueOf(std::string_view bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  return {bytes.size(), const_cast<char*>(bytes.data())};
}

std::string BytesOf(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

}  // namespace

Result<LmdbEnv> LmdbEnv::Open(const std::string& path, Mode mode) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    // LMDB would take an empty file for a new store, and a device or a link's target for ours.
    if (!S_ISREG(status.st_mode)) return Fail(Damaged(path, "not a regular file"));
    if (status.st_nlink > 1) return Fail(Damaged(path, "it has other names, too"));
    if (status.st_size == 0) return Fail(Damaged(path, "empty"));
  } else if (errno != ENOENT || mode == Mode::kExisting) {
    return FailSys(errno, "opening address store " + path);
  }
  MDB_env* raw = nullptr;
  if (const int rc = mdb_env_create(&raw); rc != 0) return Fail(LmdbError(rc, path, "opening"));
  Handle handle(raw);
  int rc = mdb_env_set_mapsize(raw, kStoreSize);
  if (rc == 0) rc = mdb_env_open(raw, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK | MDB_NORDAHEAD, kFileMode);
  if (rc != 0) return Fail(LmdbError(rc, path, "opening"));
  LmdbEnv env(path, std::move(handle));
  RH_TRY(env.FixLength());
  return env;
}

// The new length reaches the disk with the next commit's fdatasync, before the page that makes it count.
Result<void> LmdbEnv::FixLength() {
  MDB_envinfo info{};
  MDB_stat stat{};
  int fd = -1;
  mdb_env_info(env_.get(), &info);
  mdb_env_stat(env_.get(), &stat);
  mdb_env_get_fd(env_.get(), &fd);
  const std::size_t pages = info.me_last_pgno + 1;
  // LMDB maps whatever a damaged meta page counts.
  if (pages > kStoreSize / stat.ms_psize)
    return Fail(Damaged(path_, "its meta page counts " + std::to_string(pages) + " pages"));
  struct stat status {};
  if (::fstat(fd, &status) != 0) return FailSys(errno, "reading the size of address store " + path_);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size < pages * stat.ms_psize) {
    return Fail(Damaged(path_, std::to_string(size) + " bytes long, and " +
                                   std::to_string(pages * stat.ms_psize) + " are counted"));
  }
  // A new file, or one of an older version.
  if (size < kStoreSize && ::ftruncate(fd, static_cast<off_t>(kStoreSize)) != 0)
    return Fail(LmdbError(errno, path_, "extending"));
  return {};
}

Result<LmdbTxn> LmdbTxn::Begin(const LmdbEnv& env, Mode mode) {
  MDB_txn* raw = nullptr;
  const unsigned flags = mode == Mode::kRead ? static_cast<unsigned>(MDB_RDONLY) : 0U;
  if (const int rc = mdb_txn_begin(env.env_.get(), nullptr, flags, &raw); rc != 0) {
    return Fail(LmdbError(rc, env.path_, "reading"));
  }
  Handle handle(raw);
  MDB_dbi table = 0;
  if (const int rc = mdb_dbi_open(raw, nullptr, 0, &table); rc != 0) {
    return Fail(LmdbError(rc, env.path_, "reading"));
  }
  return LmdbTxn(env.path_, std::move(handle), table);
}

Result<std::optional<std::string>> LmdbTxn::Get(std::string_view key) const {
  MDB_val wanted = ValueOf(key);
  MDB_val found{};
  const int rc = mdb_get(txn_.get(), table_, &wanted, &found);
  if (rc == MDB_NOTFOUND) return std::nullopt;
  if (rc != 0) return Fail(LmdbError(rc, path_, "reading"));
  return BytesOf(found);
}

Result<std::optional<KeyValue>> LmdbTxn::Seek(std::string_view key, bool backwards) const {
  MDB_cursor* raw = nullptr;
  if (const int rc = mdb_cursor_open(txn_.get(), table_, &raw); rc != 0) {
    return Fail(LmdbError(rc, path_, "reading"));
  }
  const std::unique_ptr<MDB_cursor, void (*)(MDB_cursor*)> cursor(raw, mdb_cursor_close);
  MDB_val at = ValueOf(key);
  MDB_val value{};
  int rc = mdb_cursor_get(raw, &at, &value, MDB_SET_RANGE);
  if (backwards && (rc == MDB_NOTFOUND || (rc == 0 && BytesOf(at) != key))) {
    // SET_RANGE stands on the next higher key, or behind all.
    rc = mdb_cursor_get(raw, &at, &value, rc == 0 ? MDB_PREV : MDB_LAST);
  }
  if (rc == MDB_NOTFOUND) return std::nullopt;
  if (rc != 0) return Fail(LmdbError(rc, path_, "reading"));
  return KeyValue{BytesOf(at), BytesOf(value)};
}

Result<std::optional<KeyValue>> LmdbTxn::AtOrAfter(std::string_view key) const {
  return Seek(key, false);
}

Result<std::optional<KeyValue>> LmdbTxn::AtOrBefore(std::string_view key) const {
  return Seek(key, true);
}

Result<std::vector<KeyValue>> LmdbTxn::Under(std::string_view prefix) const {
  std::vector<KeyValue> entries;
  for (std::string at(prefix); at.size() <= kMaxKeySize; at = entries.back().key + '\0') {
    auto entry = RH_TRY(AtOrAfter(at));
    if (!entry || entry->key.compare(0, prefix.size(), prefix) != 0) break;
    entries.push_back(std::move(*entry));
  }
  return entries;
}

Result<void> LmdbTxn::Put(std::string_view key, std::string_view value) {
  MDB_val at = ValueOf(key);
  MDB_val content = ValueOf(value);
  if (const int rc = mdb_put(txn_.get(), table_, &at, &content, 0); rc != 0) {
    return Fail(LmdbError(rc, path_, "writing"));
  }
  return {};
}

Result<void> LmdbTxn::Erase(std::string_view key) {
  MDB_val at = ValueOf(key);
  const int rc = mdb_del(txn_.get(), table_, &at, nullptr);
  if (rc != 0 && rc != MDB_NOTFOUND) return Fail(LmdbError(rc, path_, "writing"));
  return {};
}

Result<void> LmdbTxn::Commit() {
  // mdb_txn_commit frees the transaction whatever it answers.
  if (const int rc = mdb_txn_commit(txn_.release()); rc != 0) {
    return Fail(LmdbError(rc, path_, "writing"));
  }
  return {};
}

}  // namespace railhead::ipam
