// kubelet's calls, made one by one and timed: GetPreferredAllocation and Allocate over gRPC.
//
// gRPC is hidden in the implementation. Threads: one at a time. Errors: kConflict with what the
// plugin answers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::bench {

class NodeClient {
 public:
  // A plugin's socket.
  explicit NodeClient(const std::string& socket_path);
  NodeClient(const NodeClient&) = delete;
  NodeClient& operator=(const NodeClient&) = delete;
  ~NodeClient();

  // Microseconds from before the call until the answer is there.
  Result<double> Prefer(const std::vector<std::string>& available, const std::vector<std::string>& must,
                        int size);
  Result<double> Allocate(const std::vector<std::string>& ids);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::bench
