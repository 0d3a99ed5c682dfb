// The log that the kernel's dm-log-writes keeps of all that was written to a device, in the order
// in which the device was told: what a power loss may have left is read from it.
//
// Format: drivers/md/dm-log-writes.c (struct log_write_super, struct log_write_entry); a sector of
// the log is what its super block says. Errors: kMalformed for what is no such log or is cut off;
// kIo. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::testing {

struct LoggedWrite {
  std::uint64_t offset = 0;  // of the device, in bytes
  std::string data;          // empty: a flush, a mark or a discard
  std::string mark;          // what `dmsetup message ... mark` said
  // All that was written before is on the disk: REQ_PREFLUSH, REQ_FUA.
  bool flush = false;
  bool fua = false;
};

// `bytes`: the log device from its start.
Result<std::vector<LoggedWrite>> ParseWriteLog(const std::string& bytes);

// A disk after a loss of power: `writes` up to `end`, of which those behind the last flush before
// it may be missing. `keep(i)` says whether write i, one of these, has reached the disk.
template <typename Keep>
void ApplyWrites(const std::vector<LoggedWrite>& writes, std::size_t begin, std::size_t end,
                 std::string* disk, Keep keep) {
  for (std::size_t i = begin; i < end; ++i) {
    const LoggedWrite& write = writes[i];
    if (write.data.empty() || write.offset + write.data.size() > disk->size() || !keep(i)) continue;
    disk->replace(write.offset, write.data.size(), write.data);
  }
}

}  // namespace railhead::testing
