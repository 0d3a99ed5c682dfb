// What was known of the PFs while the host could see their network devices.
//
// A PF whose network device some CNI plugin has moved into a pod shows neither its name nor its
// kind to the host, and in exclusive RDMA mode no RDMA device; selectors and rails go by these.
// So railheadd writes down what it sees (/run/railhead/pfs.json, gone with the boot, after which
// everything is at home), and whoever looks at the inventory takes it from there while the
// network device is away. A PF is forgotten when it is no longer on the PCI bus, and when its
// driver or its link's type is another one.
// Threads: thread-safe functions, one writer. Errors of the reader: none; what cannot be read is
// not known, and is written anew.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "deviceplugin/node/inventory/inventory.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

class PfMemory {
 public:
  explicit PfMemory(Root root) : root_(std::move(root)) {}

  // Fills in what `pf`, whose network device is not in the host's namespace, does not show. The
  // file is read at the first call. A name that another network device of the host has by now
  // stays "".
  void Recall(NicFunction* pf);

 private:
  const Root root_;
  std::optional<std::map<std::string, NicFunction>> known_;  // by address
};

// Writes the file if it is to be another one. kIo.
Result<void> RememberPfs(const Root& root, const Inventory& inventory);

}  // namespace railhead
