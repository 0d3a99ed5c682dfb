#include "ipam/store/lmdb.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace railhead::ipam {
namespace {

// Address space only; the file grows with its content. A /12 full of allocations takes about a tenth of this
// size.
constexpr std::size_t kMapSize = std::size_t{4} << 30;
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
            std::string(what) + " address store " + path + ": larger than " + std::to_string(kMapSize >> 30) +
                " GiB",
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

struct FileExtent {
  int fd = -1;
  std::size_t page_size = 0;
  std::size_t size = 0;   // of the file
  std::size_t pages = 0;  // that the newest transaction counts

  [[nodiscard]] std::size_t counted() const { return pages * page_size; }
};

Result<FileExtent> ExtentOf(MDB_env* env) {
  MDB_envinfo info{};
  MDB_stat stat{};
  FileExtent extent;
  mdb_env_info(env, &info);
  mdb_env_stat(env, &stat);
  mdb_env_get_fd(env, &extent.fd);
  struct stat status {};
  if (::fstat(extent.fd, &status) != 0) return FailSys(errno, "reading the size of its file");
  extent.page_size = stat.ms_psize;
  extent.size = static_cast<std::size_t>(status.st_size);
  extent.pages = info.me_last_pgno + 1;
  return extent;
}

// The transaction is durable whether this succeeds or not: a file that stays short is walked when it
// is opened. The new size reaches the disk with the next commit's fdatasync.
void ExtendToCounted(MDB_env* env) {
  const auto extent = ExtentOf(env);
  if (!extent || extent->size >= extent->counted()) return;
  [[maybe_unused]] const int ignored = ::ftruncate(extent->fd, static_cast<off_t>(extent->counted()));
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
  int rc = mdb_env_set_mapsize(raw, kMapSize);
  if (rc == 0) rc = mdb_env_open(raw, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK | MDB_NORDAHEAD, kFileMode);
  if (rc != 0) return Fail(LmdbError(rc, path, "opening"));
  LmdbEnv env(path, std::move(handle));
  RH_TRY(env.CheckComplete());
  return env;
}

Result<void> LmdbEnv::CheckComplete() {
  const FileExtent extent = RH_TRY_WRAP(ExtentOf(env_.get()), "address store " + path_);
  // LMDB maps whatever a damaged meta page counts. A file must not be extended to that.
  if (extent.pages > kMapSize / extent.page_size)
    return Fail(Damaged(path_, "its meta page counts " + std::to_string(extent.pages) + " pages"));
  if (extent.size >= extent.counted()) return {};
  if (const auto walked = WalkLmdbFile(extent.fd); !walked) {
    return Fail(Damaged(path_, std::to_string(extent.size) + " bytes long, " +
                                   std::to_string(extent.counted()) + " are counted, and " +
                                   walked.error().message));
  }
  pages_short_ = (extent.counted() - extent.size + extent.page_size - 1) / extent.page_size;
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
  MDB_env* env = mdb_txn_env(txn_.get());
  // mdb_txn_commit frees the transaction whatever it answers.
  if (const int rc = mdb_txn_commit(txn_.release()); rc != 0) {
    return Fail(LmdbError(rc, path_, "writing"));
  }
  ExtendToCounted(env);
  return {};
}

}  // namespace railhead::ipam
