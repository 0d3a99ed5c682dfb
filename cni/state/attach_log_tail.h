// Reads the lines that were added to the log of attach timings since the last call.
//
// Starts at the log's end. Goes on when the log becomes attach.log.1 and a new one begins. The lines of a log
// that is renamed twice between two calls are lost (at 256 KiB each, some thousand ADDs). Threads: one.
// Errors: kIo.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cni/state/attach_log.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

class AttachLogTail {
 public:
  explicit AttachLogTail(const Root& root);

  Result<std::vector<AttachTiming>> Next();

 private:
  // Reads the complete lines of one file from `place_` on.
  Result<void> ReadOn(const std::string& path, std::vector<AttachTiming>* timings);

  const std::string path_;
  ino_t file_ = 0;  // 0: there was none
  std::int64_t place_ = 0;
};

}  // namespace railhead
