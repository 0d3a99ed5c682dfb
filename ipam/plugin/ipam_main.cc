#include <cstdlib>

#include "ipam/plugin/ipam_plugin.h"

int main(int argc, char** argv) {
  const char* root = std::getenv("RAILHEAD_ROOT");
  railhead::ipam::IpamPlugin plugin(railhead::Root(root == nullptr ? "" : root));
  const railhead::CniPluginInfo info{
      "railhead-ipam", "addresses of rail subnets, incrementing, with a reuse delay",
      "Configuration: the 'ipam' object of the network configuration. Its forms:\n"
      "  {\"type\": \"railhead-ipam\", \"rail\": \"rail0\"}\n"
      "      as /etc/railhead/fabric.json says\n"
      "  {\"type\": \"railhead-ipam\", \"subnet\": \"10.0.0.0/24\", ...}\n"
      "      with rangeStart, rangeEnd, gateway, exclude, routes,\n"
      "      reuseDelaySeconds (default 600), minReuseDelaySeconds (60)\n"
      "  {\"type\": \"railhead-ipam\", \"ranges\": [[{\"subnet\": ...}]]}\n"
      "      one address of each set\n"
      "  {\"type\": \"railhead-ipam\", \"links\": [{\"ifname\": \"net1\", \"rail\": \"rail0\"}]}\n"
      "      several addresses in one call, each as above\n"
      "and with the fields of host-local and whereabouts. A fixed address:\n"
      "runtimeConfig.ips, args.cni.ips or CNI_ARGS IP=ADDRESS.\n"
      "GC releases what no attachment in cni.dev/valid-attachments holds. STATUS\n"
      "answers 50 for a wrong configuration or an unusable store.\n"
      "State: /var/lib/railhead/ipam\n"};
  return RunCniPlugin(plugin, info, argc, argv);
}
