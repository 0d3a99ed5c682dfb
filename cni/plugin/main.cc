#include <cstdlib>

#include "cni/plugin/plugin.h"
#include "netns/linux_kernel.h"

namespace {

constexpr const char* kHelp =
    "Attaches one SR-IOV VF (or whole PF) per call: VF settings through the PF, the move\n"
    "into the pod, address, routes and rules of its rail, soft RoCE where wanted, ARP\n"
    "announcement, and the handoff for NCCL.\n\n"
    "Configuration (all but type, name and cniVersion optional; rails come from\n"
    "/etc/railhead/fabric.json): deviceID, rail, vlan, vlanQoS, mac, spoofchk, trust,\n"
    "link_state, max_tx_rate, min_tx_rate, mtu, gateway, routes, table, softRoce,\n"
    "announce, waitSeconds, handoff, fabric, ipam.\n\n"
    "Files: /run/railhead (journal, locks, handoff), /run/cdi (CDI specs),\n"
    "/var/lib/railhead (allocation records, addresses). RAILHEAD_ROOT: a directory to\n"
    "take all paths below, for tests.\n\n"
    "CNI error codes: 1 version, 4 environment, 5 I/O, 6 decoding, 7 configuration,\n"
    "8 namespace, 11 try again later, 101 not found, 102 exists, 103 unsupported,\n"
    "104 permission, 105 exhausted, 106 conflict, 999 internal.\n";

}  // namespace

int main(int argc, char** argv) {
  const char* prefix = std::getenv("RAILHEAD_ROOT");
  const railhead::Root root(prefix == nullptr ? "" : prefix);
  railhead::LinuxKernel kernel(root);
  railhead::RailheadPlugin plugin(root, kernel);
  return railhead::RunCniPlugin(plugin, {"railhead", "attaches SR-IOV RoCE NICs to pods", kHelp}, argc, argv);
}
