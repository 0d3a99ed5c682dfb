// The service manager's end of sd_notify(3).
#pragma once

#include <string>
#include <vector>

#include "netns/base/unique_fd.h"

namespace railhead::testing {

class NotifySocket {
 public:
  // A path, or "@NAME" in the abstract namespace, as in $NOTIFY_SOCKET.
  explicit NotifySocket(const std::string& name);

  // The next message, as its lines; empty when none comes within a minute.
  std::vector<std::string> Next();
  // The next message that has this line; empty when none comes within a minute.
  std::vector<std::string> Await(const std::string& line);

 private:
  UniqueFd socket_;
};

}  // namespace railhead::testing
