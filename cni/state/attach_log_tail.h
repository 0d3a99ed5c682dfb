// What came into the log of attach timings since the last look: for who counts it.
//
// Begins at the log's end. Follows it when it becomes attach.log.1 and a new one begins; what was in a log
// that was renamed twice between two looks is lost (at 256 KiB each, some thousand ADDs). Threads: one.
// Errors: kIo.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cni/state/attach_log.h"

namespace railhead {

class AttachLogTail {
 public:
  explicit AttachLogTail(const Root& root);

  Result<std::vector<AttachTiming>> Next();

 private:
  // Of one file, from `place_` on; its whole lines.
  Result<void> ReadOn(const std::string& path, std::vector<AttachTiming>* timings);

  const std::string path_;
  ino_t file_ = 0;  // 0: there was none
  std::int64_t place_ = 0;
};

}  // namespace railhead
