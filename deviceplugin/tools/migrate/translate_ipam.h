// Translates the ipam of a network of the SR-IOV suite to that of railhead-ipam.
//
// railhead-ipam has the fields of whereabouts and host-local under the same names; the report shows how a
// rail can have them instead. Other IPAM plugins are kept, except for those that need the interface in the
// pod: railhead calls the IPAM plugin before it moves a device. Threads: pure functions. Errors: as
// ReadIpamFields(), with the document.
#pragma once

#include <string>

#include "deviceplugin/tools/migrate/document_section.h"
#include "deviceplugin/tools/migrate/network.h"
#include "netns/base/result.h"

namespace railhead::migrate {

// Fills in the ipam of `network`'s entry, its subnets and addresses.
Result<void> TranslateIpam(const DocumentSection& ipam, const Options& options, Network* network);
// Moves the addresses of the network's ipam to the rail at `rail` ("/rails/0").
void MoveAddressesToRail(const std::string& rail, const Options& options, Network* network);

}  // namespace railhead::migrate
