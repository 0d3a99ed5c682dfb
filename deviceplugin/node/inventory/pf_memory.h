// What the host knew of the PFs while it could see their network devices.
//
// If a CNI plugin has moved a PF's network device into a pod, the host sees neither its name nor its kind. In
// exclusive RDMA mode the host does not see the RDMA device, either. Selectors and rails depend on these. So
// railheadd stores what it sees in /run/railhead/pfs.json. A boot removes the file, and all devices are on
// the host then. While the network device is in another namespace, a discovery takes its facts from the file.
// A PF is forgotten if it has left the PCI bus, or if its driver or link type has changed.
//
// Threads: one per object; objects of one root at once, one writer. Reading reports no errors: a file that
// cannot be read counts as empty, and is written again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::inventory {

struct KnownPf {
  std::string id;
  std::string driver;
  std::string name;  // of its network device; "": unknown
  std::string link_type;
  bool is_rdma = false;

  bool operator==(const KnownPf&) const = default;
};

class PfMemory {
 public:
  explicit PfMemory(Root root) : root_(std::move(root)) {}

  // Fills in what `pf` does not show while its network device is in another namespace. The file is read at
  // the first call. A name that another network device of the host has now stays "".
  void Recall(NicFunction* pf);

  // Writes the file if its content changes. Errors: kIo.
  [[nodiscard]] Result<void> Remember(const Inventory& inventory) const;

 private:
  const Root root_;
  std::optional<std::vector<KnownPf>> known_;
};

}  // namespace railhead::inventory
