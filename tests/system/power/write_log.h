// The log of the kernel's dm-log-writes: all writes to a device, in the order in which the device got them.
// From it, a test computes the disk after a power loss.
//
// Format: drivers/md/dm-log-writes.c (struct log_write_super, struct log_write_entry); the super block sets
// the size of a sector. Errors: kMalformed for data that is not such a log or is cut off; kIo. Threads: one.
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
  // All earlier writes are on the disk: REQ_PREFLUSH, REQ_FUA.
  bool flush = false;
  bool fua = false;
};

// `bytes`: the log device from its start.
Result<std::vector<LoggedWrite>> ParseWriteLog(const std::string& bytes);

// A disk after a power loss: `writes` up to `end`. Those after the last flush before `end` may be missing;
// `keep(i)` decides whether such a write i has reached the disk.
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
