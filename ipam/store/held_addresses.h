// Addresses whose container is gone, for the node's reconciler.
//
// The store does not know of a container that went without its DEL. So the caller decides: by the boot (no
// network namespace survives a reboot) or by the owner (AddressStore::Release). The reuse delay begins as
// after a DEL.
// No store: nothing is held and none is made.
// Errors: as AddressStore; after an error nothing has changed.
// Threads: none; excludes other processes by the store's lock, so each call is short.
#pragma once

#include <vector>

#include "ipam/store/address_record.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::ipam {

// All held addresses, those of links included; AttachmentIfname() of an owner is its CNI_IFNAME.
// A holder of this boot may be dead, too: only the caller knows.
struct HeldAddresses {
  StoreMoment now;  // when they were listed
  std::vector<AddressRecord> records;
};
Result<HeldAddresses> ListHeld(const Root& root);

// Releases the addresses of earlier boots; returns their earlier records. The first allocation or release
// of this boot does the same: then none is left.
Result<std::vector<AddressRecord>> ReleaseEarlierBoots(const Root& root);

}  // namespace railhead::ipam
