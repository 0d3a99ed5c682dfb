#include <cstdlib>

#include "ipam/plugin/ipam_plugin.h"

int main(int argc, char** argv) {
  const char* root = std::getenv("RAILHEAD_ROOT");
  railhead::ipam::IpamPlugin plugin(railhead::Root(root == nullptr ? "" : root));
  const railhead::CniPluginInfo info{
      "railhead-ipam", "addresses of rail subnets: incrementing, with a reuse delay, durable",
      "Configuration: the 'ipam' object of the network configuration, either\n"
      "  {\"type\": \"railhead-ipam\", \"rail\": \"rail0\"}             as /etc/railhead/fabric.json says\n"
      "  {\"type\": \"railhead-ipam\", \"subnet\": \"10.0.0.0/24\", ...}  with rangeStart, rangeEnd, "
      "gateway,\n"
      "                                exclude, routes, reuseDelaySeconds (default 600), "
      "minReuseDelaySeconds (60)\n"
      "  {\"type\": \"railhead-ipam\", \"ranges\": [[{\"subnet\": ...}]]}  one address of each set\n"
      "  {\"type\": \"railhead-ipam\", \"links\": [{\"ifname\": \"rail0\", \"rail\": \"rail0\"}, ...]}\n"
      "                                several addresses in one call, each as above\n"
      "and with the fields of host-local and whereabouts. A fixed address: runtimeConfig.ips,\n"
      "args.cni.ips or CNI_ARGS IP=ADDRESS.\n"
      "GC releases what no attachment in cni.dev/valid-attachments holds; STATUS answers\n"
      "50 when ADD could not give an address.\n"
      "State: /var/lib/railhead/ipam\n"};
  return RunCniPlugin(plugin, info, argc, argv);
}
