// Checks a node after a power loss. It mounts the image, as at the next boot, and opens the address store.
// Then it compares the store with the operations that were answered before the loss.
//
// An answered ADD must keep its address, and an address with two holders is a fault. A released address must
// still be unused. The next ADD has to work.
// Needs root and a kernel with ext4. Threads: one. Errors: the check could not run; findings are sentences.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::testing {

// Operations run one after the other: each was answered before the next began.
struct Operation {
  std::size_t number = 0;  // from 1
  bool add = false;        // else DEL
  std::string container;
  std::vector<std::string> addresses;  // what ADD answered
};

// Lines "NUMBER ADD|DEL CONTAINER ADDRESS...".
Result<std::vector<Operation>> ReadOperations(const std::string& path);

struct RecoverySetting {
  std::string device;     // block device that takes the image
  std::string directory;  // where it is mounted
  std::string plugins;    // directory of railhead-ipam
  std::string config;     // of the network, JSON
  std::vector<Operation> operations;
};

// `answered`: the number of operations that were answered before the power loss. The next one may have
// happened or not.
Result<std::vector<std::string>> CheckRecovery(const RecoverySetting& setting, const std::string& image,
                                               std::size_t answered);

}  // namespace railhead::testing
