// LMDB with Result and owners: one environment of one file and one table.
//
// Opened with MDB_NOLOCK. LMDB's own lock file keeps a table of readers by process id. Such an id means
// nothing between PID namespaces (a daemon in a container beside plugins on the host). So the caller, a
// reader too, holds an exclusive FileLock from before Open() until the LmdbEnv is gone. A process opens a
// file at most once at a time (lmdb.h, "Caveats"). Commits are durable: data by fdatasync, then the meta page
// by an O_DSYNC write. After a kill or a machine's stop at any point the file has the last committed state.
//
// The file has the length of LMDB's map from its first transaction on (kStoreSize); what is not written takes
// no space. LMDB counts pages at the end that it never wrote (mdb.c: mdb_page_flush() skips P_LOOSE). So a
// file that only grows by writes may be shorter than it counts, without damage, and reading a page behind its
// end is a SIGBUS. With its length fixed before any commit no page is behind the end, whenever the power
// fails. A file that is shorter than it counts has lost something, and is refused.
// Ownership: an LmdbTxn must end before its LmdbEnv. Results are copies.
// Errors: kIo for a damaged or foreign file, with what to do; kExhausted for a full disk or map; otherwise by
// errno.
// Threads: none.
#pragma once

#include <lmdb.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/base/result.h"

namespace railhead::ipam {

// Keys are at most this long (MDB_MAXKEYSIZE of Debian's build).
inline constexpr std::size_t kMaxKeySize = 511;

// Hundreds of thousands of addresses that are not free: far more than a node's pods have within a reuse
// delay.
inline constexpr std::size_t kStoreSize = std::size_t{256} << 20;

struct KeyValue {
  std::string key;
  std::string value;

  bool operator==(const KeyValue&) const = default;
};

class LmdbEnv {
 public:
  enum class Mode { kCreate, kExisting };

  // kCreate makes an empty file if the file does not exist.
  static Result<LmdbEnv> Open(const std::string& path, Mode mode);

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  friend class LmdbTxn;
  struct Close {
    void operator()(MDB_env* env) const { mdb_env_close(env); }
  };
  using Handle = std::unique_ptr<MDB_env, Close>;

  LmdbEnv(std::string path, Handle env) : path_(std::move(path)), env_(std::move(env)) {}
  Result<void> FixLength();

  std::string path_;
  Handle env_;
};

class LmdbTxn {
 public:
  enum class Mode { kRead, kWrite };

  static Result<LmdbTxn> Begin(const LmdbEnv& env, Mode mode);
  LmdbTxn(LmdbTxn&&) noexcept = default;
  LmdbTxn& operator=(LmdbTxn&&) noexcept = default;
  LmdbTxn(const LmdbTxn&) = delete;
  LmdbTxn& operator=(const LmdbTxn&) = delete;
  // Without Commit(): abort, nothing is written and nothing synced.
  ~LmdbTxn() = default;

  [[nodiscard]] Result<std::optional<std::string>> Get(std::string_view key) const;
  // The entry with the lowest key >= `key`, or with the highest key <= `key`.
  [[nodiscard]] Result<std::optional<KeyValue>> AtOrAfter(std::string_view key) const;
  [[nodiscard]] Result<std::optional<KeyValue>> AtOrBefore(std::string_view key) const;
  // All entries whose keys start with `prefix`, in order.
  [[nodiscard]] Result<std::vector<KeyValue>> Under(std::string_view prefix) const;

  Result<void> Put(std::string_view key, std::string_view value);
  // Removing an absent key is not an error.
  Result<void> Erase(std::string_view key);
  Result<void> Commit();
  // Ends it before its destructor does: nothing is written.
  void Abort() { txn_.reset(); }

 private:
  struct End {
    void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
  };
  using Handle = std::unique_ptr<MDB_txn, End>;

  LmdbTxn(std::string path, Handle txn, MDB_dbi table)
      : path_(std::move(path)), txn_(std::move(txn)), table_(table) {}
  [[nodiscard]] Result<std::optional<KeyValue>> Seek(std::string_view key, bool backwards) const;

  std::string path_;
  Handle txn_;
  MDB_dbi table_ = 0;
};

}  // namespace railhead::ipam
