#include <cstdlib>

#include "cni/attachment/announcement_resend.h"
#include "cni/plugin/plugin.h"
#include "netns/linux_kernel.h"

namespace {

constexpr const char* kHelp =
    "Attaches SR-IOV VFs (or whole PFs): VF settings through the PF, the move into\n"
    "the pod, address, routes and rules of the rail, soft RoCE where requested,\n"
    "conflict probes, ARP and NA announcements, and the NCCL configuration. One device\n"
    "per call (deviceID), or all devices of the pod in one (devices, or CNI_ARGS\n"
    "K8S_POD_UID).\n\n"
    "Configuration: all keys but type, name and cniVersion are optional; rails are in\n"
    "/etc/railhead/fabric.json. railctl config schema network prints every key.\n\n"
    "Files: /run/railhead (journal, locks, NCCL configuration), /run/cdi (CDI specs),\n"
    "/var/lib/railhead (allocation records, addresses). RAILHEAD_ROOT: a folder that\n"
    "all paths are below, for tests.\n\n"
    "CNI error codes: 1 version, 4 environment, 5 I/O, 6 decoding, 7 configuration,\n"
    "8 namespace, 11 try again later, 50 not available, 101 not found,\n"
    "102 exists, 103 unsupported, 104 permission, 105 exhausted,\n"
    "106 conflict, 999 internal.\n";

}  // namespace

int main(int argc, char** argv) {
  const char* prefix = std::getenv("RAILHEAD_ROOT");
  const railhead::Root root(prefix == nullptr ? "" : prefix);
  railhead::LinuxKernel kernel(root);
  railhead::attachment::RailheadPlugin plugin(root, kernel);
  const int status =
      railhead::RunCniPlugin(plugin, {"railhead", "attaches SR-IOV RoCE NICs to pods", kHelp}, argc, argv);
  // The runtime has the result and waits only for the end of this process.
  if (status == 0 && plugin.announced())
    railhead::attachment::ResendInBackground(root, kernel, *plugin.announced());
  return status;
}
