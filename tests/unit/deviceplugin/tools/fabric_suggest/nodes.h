// Observations of nodes with eight PFs, each on the same switch as a GPU and connected to its own leaf
// switch.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "deviceplugin/tools/fabric_suggest/observe.h"

namespace railhead::testing {

inline constexpr int kPfs = 8;

// "0000:40:00.0"
inline std::string PfAddress(int rail) {
  char text[16];
  (void)std::snprintf(text, sizeof text, "0000:%02x:00.0", 0x10 + 0x10 * rail);
  return text;
}

inline LldpNeighbor LeafPort(const std::string& leaf, int node) {
  LldpNeighbor neighbor;
  neighbor.chassis = "02:00:00:00:00:01";
  neighbor.port = "swp" + std::to_string(node + 1);
  neighbor.system_name = leaf;
  neighbor.max_frame = 9216;
  return neighbor;
}

// Without address of the host and without LLDP neighbor.
inline fabric_suggest::ObservedPf PlainPf(int rail) {
  fabric_suggest::ObservedPf pf;
  pf.device = PfAddress(rail);
  pf.netdev = "ens" + std::to_string(rail) + "f0";
  pf.rdma = "mlx5_" + std::to_string(rail);
  pf.is_rdma = true;
  pf.driver = "mlx5_core";
  pf.link_type = "ether";
  pf.vfs = 8;
  pf.most_vfs = 16;
  pf.accelerator = "0000:0a:00.0";
  pf.path = "PXB";
  pf.here = pf.up = pf.carrier = true;
  pf.mtu = 9000;
  return pf;
}

// 10.10R.0.0/16 on rail R, with the gateway .255.254; node N has 10.10R.0.N.
inline fabric_suggest::ObservedNetwork RailNetwork(int rail, int node) {
  const std::string net = "10." + std::to_string(100 + rail) + ".";
  fabric_suggest::ObservedNetwork network;
  network.netdev = "ens" + std::to_string(rail) + "f0";
  network.addresses = {*IpPrefix::Parse(net + "0." + std::to_string(node + 1) + "/16")};
  network.routes = {{*IpPrefix::Parse("10.96.0.0/11"), *IpAddress::Parse(net + "255.254"), 254}};
  return network;
}

// "gpu-000" and so on.
inline fabric_suggest::NodeObservation GpuNode(int number) {
  char name[16];
  (void)std::snprintf(name, sizeof name, "gpu-%03d", number);
  fabric_suggest::NodeObservation node;
  node.node = name;
  node.time = std::chrono::system_clock::time_point(std::chrono::seconds(1'800'000'000));
  node.accelerators = kPfs;
  for (int rail = 0; rail < kPfs; ++rail) {
    node.pfs.push_back(PlainPf(rail));
    node.pfs.back().neighbor = LeafPort("su1-leaf" + std::to_string(rail), number);
    node.pfs.back().networks = {RailNetwork(rail, number)};
  }
  return node;
}

inline std::vector<fabric_suggest::NodeObservation> GpuNodes(int count) {
  std::vector<fabric_suggest::NodeObservation> nodes;
  nodes.reserve(static_cast<std::size_t>(count));
  for (int number = 0; number < count; ++number) nodes.push_back(GpuNode(number));
  return nodes;
}

}  // namespace railhead::testing
