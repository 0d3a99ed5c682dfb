// A picture of the node: NUMA nodes, host bridges, PCIe switches, and on them the
// accelerators and the NICs with their rails and VFs.
//
// One SVG document that needs nothing else (no script, no font, no network); every text in it is
// escaped, so no name can become markup. Boxes nest as the PCI tree does; what hangs on the
// same innermost switch is PIX. Pointing at a VF shows its address.
// Source: SVG 1.1, XML 1.0 section 2.2 for what characters may be there.
// Threads: pure function.
#pragma once

#include <string>

#include "deviceplugin/tools/topology_view/node_report.h"

namespace railhead {

std::string DrawNode(const NodeReport& report);

}  // namespace railhead
