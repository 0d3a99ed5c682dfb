// LMDB with Result and owners: one environment of one file and one table.
//
// Opened with MDB_NOLOCK. LMDB's own lock file keeps a table of readers by process id. Such an id means
// nothing between PID namespaces (a daemon in a container beside plugins on the host). So the caller, a
// reader too, holds an exclusive FileLock from before Open() until the LmdbEnv is gone. A process opens a
// file at most once at a time (lmdb.h, "Caveats"). Commits are durable: data by fdatasync, then the meta page
// by an O_DSYNC write. After a kill or a machine's stop at any point the file has the last committed state.
//
// LMDB counts pages at the end of the file that it never wrote. So each commit extends the file to every page
// that LMDB counts, and Open() normally reads no pages. A file may be shorter if an older version wrote it,
// or if the power failed between a commit and the extension. Open() then walks it once (WalkLmdbFile()
// below), and refuses it when a page that is in use is missing.
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
  // Pages that were counted and missing from the file when it was opened. Not 0 when the file was walked. The
  // next commit extends the file.
  [[nodiscard]] std::size_t pages_short() const { return pages_short_; }

 private:
  friend class LmdbTxn;
  struct Close {
    void operator()(MDB_env* env) const { mdb_env_close(env); }
  };
  using Handle = std::unique_ptr<MDB_env, Close>;

  LmdbEnv(std::string path, Handle env) : path_(std::move(path)), env_(std::move(env)) {}
  Result<void> CheckComplete();

  std::string path_;
  Handle env_;
  std::size_t pages_short_ = 0;
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

// Whether an LMDB file has every page that its newest transaction uses.
//
// The size of the file does not show that. A transaction may take a page from the end of the file and free it
// again. LMDB counts such a page and never writes it (mdb.c: mdb_page_flush() skips P_LOOSE; "the file may be
// shorter if the freeDB lists the final pages"). The walk reads by pread(): a page that is missing is an
// error here, and a SIGBUS in LMDB's map.
//
// It starts at the newer of the two meta pages, as LMDB does. It reads the free list's tree, the main tree
// and the trees of named databases whole. It checks page numbers, kinds of pages, the bounds of nodes,
// overflow pages and the totals of each tree. It also checks that no page is used twice, or used and free.
// Format: version 1, that of LMDB 0.9, in the machine's byte order. Duplicate keys (MDB_DUPSORT) are refused:
// the store has none.
// Errors: kIo with the page and what is wrong with it. Threads: none; reads only.

Result<void> WalkLmdbFile(int fd);

}  // namespace railhead::ipam
