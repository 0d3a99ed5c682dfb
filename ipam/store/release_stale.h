// Addresses that nobody can have any more, for the node's reconciler.
//
// What happened to a container without its DEL is not in the store, so the caller
// decides: by the boot (no network namespace survives one) or by the owner. What is
// released rests as after a DEL. No store: nothing is held and none is made.
// Errors: as AddressStore; after an error nothing has changed.
// Threads: none; excludes other processes by the store's lock, so each call is short.
#pragma once

#include <cstddef>
#include <vector>

#include "ipam/store/address_record.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// What is held, links included; AttachmentIfname() of an owner is its CNI_IFNAME.
// A holder of this boot may have died too: whether it lives, only the caller knows.
struct HeldAddresses {
  StoreMoment now;  // when they were listed
  std::vector<AddressRecord> records;
};
Result<HeldAddresses> ListHeld(const Root& root);

// Releases what was handed out before this boot; these, as they were. Whoever asked for an address
// or released one in this boot before has done so already: then there are none.
Result<std::vector<AddressRecord>> ReleaseEarlierBoots(const Root& root);

// Releases what the attachment `owner` (ifname: CNI_IFNAME) and its links hold, as
// DEL does; how many.
Result<std::size_t> ReleaseOwner(const Root& root, const AddressOwner& owner);

}  // namespace railhead
