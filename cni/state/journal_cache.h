// The finished attachments of the journal, for periodic passes: does not read an unchanged file again.
//
// A new entry replaces the file, which inode, time and size show. The cached entries do not have the IPAM
// calls and plugin paths, which only a release needs and which are most of an entry. Ownership: entries are
// shared and never change. Threads: one. Errors: kIo when the journal cannot be listed.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

class JournalCache {
 public:
  using Entries = std::vector<std::shared_ptr<const JournalEntry>>;
  struct View {
    Entries entries;  // of this boot, kDone, by path
    std::vector<UnreadableEntry> unreadable;
  };

  explicit JournalCache(Root root) : root_(root), journal_(std::move(root)) {}

  Result<View> Read();

 private:
  // Which content a path has.
  struct Identity {
    ino_t file = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    std::int64_t size = 0;

    bool operator==(const Identity&) const = default;
  };
  struct Known {
    Identity identity;
    std::shared_ptr<const JournalEntry> entry;
  };
  using Files = std::map<std::string, Known>;

  static std::optional<Identity> IdentityOf(const std::string& path);
  // Takes the path over from what is known, or reads it.
  Result<void> Look(const std::string& path, const std::string& boot_id, Files* now, View* view);

  Root root_;
  Journal journal_;
  Files known_;
};

}  // namespace railhead
