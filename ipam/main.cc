#include <cstdlib>

#include "ipam/plugin.h"

int main(int argc, char** argv) {
  const char* root = std::getenv("RAILHEAD_ROOT");
  railhead::IpamPlugin plugin(railhead::Root(root == nullptr ? "" : root));
  const railhead::CniPluginInfo info{
      "railhead-ipam", "addresses of rail subnets: incrementing, resting after use, durable",
      "Configuration: the 'ipam' object of the network configuration, either\n"
      "  {\"type\": \"railhead-ipam\", \"rail\": \"rail0\"}             as /etc/railhead/fabric.json says\n"
      "  {\"type\": \"railhead-ipam\", \"subnet\": \"10.0.0.0/24\", ...}  with rangeStart, rangeEnd, "
      "gateway,\n"
      "                                exclude, routes, restSeconds (default 600)\n"
      "State: /var/lib/railhead/ipam\n"};
  return RunCniPlugin(plugin, info, argc, argv);
}
