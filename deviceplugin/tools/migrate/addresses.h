// The ipam of a network of the SR-IOV suite as railhead-ipam's.
//
// whereabouts' and host-local's fields are railhead-ipam's own under the same names; where one rail
// can say it, it is told how. Other IPAM plugins are asked as before, but for those that need the
// interface in the pod: railhead asks before it moves a device.
// Threads: pure functions. Errors: as ReadIpamFields(), with the document.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/documents.h"
#include "deviceplugin/tools/migrate/network.h"
#include "deviceplugin/tools/migrate/report.h"
#include "netns/base/result.h"

namespace railhead::migrate {

// Fills in the ipam of `network`'s entry, its subnets and addresses.
Result<void> TranslateIpam(const Section& ipam, const Options& options, Network* network);
// Has the rail at `rail` ("/rails/0") say what the network's ipam said.
void MoveAddressesToRail(const std::string& rail, const Options& options, Network* network);

// The addresses that host-local has given on a node: how they stay their pods'.
// Threads: pure function.

// Adds to `imports` what is to be run on the node.
DocumentReport ReportHeld(const HeldAddresses& held, const std::vector<Network>& networks,
                          std::vector<std::string>* imports);

}  // namespace railhead::migrate
