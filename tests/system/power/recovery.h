// What a node finds after a loss of power: the image is mounted, as at the next boot, the address
// store is opened, and compared with the operations that had been answered by then.
//
// No answered ADD may have lost an address, no released one may be free already, no address may
// have two holders, and the next ADD has to work.
// Needs root and a kernel with ext4. Threads: one. Errors: what could not be tried at all;
// findings are sentences.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::testing {

// One after the other; each was answered before the next began.
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

// `answered`: how many operations had been when the power was lost; the one behind them may have
// happened or not.
Result<std::vector<std::string>> CheckRecovery(const RecoverySetting& setting, const std::string& image,
                                               std::size_t answered);

}  // namespace railhead::testing
