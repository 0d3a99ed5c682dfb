#include <cstdlib>

#include "cni/attachment/announce_repeat.h"
#include "cni/plugin/plugin.h"
#include "netns/linux_kernel.h"

namespace {

constexpr const char* kHelp =
    "Attaches SR-IOV VFs (or whole PFs): VF settings through the PF, the move into the\n"
    "pod, address, routes and rules of the rail, soft RoCE where wanted, conflict probes,\n"
    "ARP and NA announcements, and the handoff for NCCL. One device per call (deviceID),\n"
    "or all devices of the pod in one (devices, or CNI_ARGS K8S_POD_UID).\n\n"
    "Configuration: all but type, name and cniVersion is optional; rails come from\n"
    "/etc/railhead/fabric.json. railctl config schema network prints every key.\n\n"
    "Files: /run/railhead (journal, locks, handoff), /run/cdi (CDI specs),\n"
    "/var/lib/railhead (allocation records, addresses). RAILHEAD_ROOT: a directory to\n"
    "take all paths below, for tests.\n\n"
    "CNI error codes: 1 version, 4 environment, 5 I/O, 6 decoding, 7 configuration,\n"
    "8 namespace, 11 try again later, 50 not available, 51 no rail has carrier, 101 not\n"
    "found, 102 exists, 103 unsupported, 104 permission, 105 exhausted, 106 conflict,\n"
    "999 internal.\n";

}  // namespace

int main(int argc, char** argv) {
  const char* prefix = std::getenv("RAILHEAD_ROOT");
  const railhead::Root root(prefix == nullptr ? "" : prefix);
  railhead::LinuxKernel kernel(root);
  railhead::attachment::RailheadPlugin plugin(root, kernel);
  const int status =
      railhead::RunCniPlugin(plugin, {"railhead", "attaches SR-IOV RoCE NICs to pods", kHelp}, argc, argv);
  // The runtime has its answer and waits for nothing but our end.
  if (status == 0 && plugin.announced()) railhead::attachment::RepeatLater(root, kernel, *plugin.announced());
  return status;
}
