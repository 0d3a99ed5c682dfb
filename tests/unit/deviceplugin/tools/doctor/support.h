// A good node with two rails. Tests change one fact.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/doctor/verdict.h"

namespace railhead::testing {

inline PciAddress At(const std::string& text) {
  return PciAddress::Parse(text).value_or(PciAddress{});
}

// GIDs as a port with RoCE v1 and v2 begins.
inline std::vector<GidEntry> TwoTypes(const std::string& netdev) {
  const auto gid = IpAddress::Parse("fe80::1").value_or(IpAddress{});
  return {{0, gid, GidType::kRoceV1, netdev}, {1, gid, GidType::kRoceV2, netdev}};
}

// Everything by DSCP; DSCP 26 (traffic class 106) is priority 3, which is lossless.
inline DcbState GoodDcb() {
  DcbState dcb;
  dcb.pfc = std::uint8_t{0x08};
  dcb.ets.emplace();
  dcb.ets->traffic_classes = {0, 1, 2, 3, 4, 5, 6, 7};
  dcb.ets->selection.fill(kTsaEts);
  dcb.ets->bandwidth = {50, 0, 0, 50, 0, 0, 0, 0};
  dcb.dscp = {{0, 0}, {26, 3}, {48, 6}};
  return dcb;
}

inline doctor::PfFacts GoodPf(int number) {
  const std::string n = std::to_string(number);
  doctor::PfFacts pf;
  pf.address = At("0000:" + n + "3:00.0");
  pf.rail = "rail" + n;
  pf.netdev = "pf" + n;
  pf.rdma = "mlx5_" + n;
  pf.driver = "mlx5_core";
  pf.vendor = 0x15b3;
  pf.device = 0x1021;
  pf.total_vfs = 16;
  pf.vfs = {At("0000:" + n + "3:00.2"), At("0000:" + n + "3:00.3")};
  pf.mtu = 9000;
  pf.firmware = std::string("28.41.1000");
  pf.port = PortState::kActive;
  pf.arp = doctor::ArpSettings{2, 1, 2};
  pf.sriov_control = std::uint16_t{0x19};
  pf.iommu = std::string("identity");
  pf.gids = {{pf.rdma, TwoTypes(pf.netdev)}};
  pf.dcb = GoodDcb();
  pf.ecn = doctor::EcnState{std::vector<bool>(8, true), std::vector<bool>(8, true)};
  VfSettings limited;
  limited.rate = VfRate{0, 100000};
  limited.spoofchk = true;
  pf.vf_settings = std::map<int, VfSettings>{{0, limited}, {1, limited}};
  return pf;
}

inline lldp::LldpReport GoodLldpReport() {
  lldp::LldpReport report;
  for (const std::string& n : {std::string("0"), std::string("1")}) {
    lldp::RailNeighbor rail;
    rail.rail = "rail" + n;
    rail.carrier = true;
    rail.expected = {"leaf" + n};
    rail.neighbor.emplace();
    rail.neighbor->neighbor.chassis = "leaf" + n;
    rail.neighbor->neighbor.port = "swp1";
    rail.cabling = lldp::Cabling::kRight;
    report.rails.push_back(rail);
  }
  return report;
}

inline doctor::NodeFacts GoodNode() {
  doctor::NodeFacts node;
  node.node = "node0";
  Fabric fabric;
  Pool pool;
  pool.resource = kDefaultResource;
  for (const int number : {0, 1}) {
    Rail rail;
    rail.name = "rail" + std::to_string(number);
    rail.mtu = 9000;
    rail.traffic_class = 106;
    pool.rails.push_back(rail.name);
    fabric.rails.push_back(rail);
  }
  fabric.pools = {pool};
  fabric.rdma_exclusive = true;
  node.fabric = fabric;
  node.pfs = {GoodPf(0), GoodPf(1)};
  node.accelerators =
      std::vector<doctor::AcceleratorFacts>{{At("0000:01:00.0"), 0x10de, "nvidia", std::string("identity")}};
  node.bridges = std::vector<doctor::BridgeFacts>{
      {At("0000:02:00.0"), std::optional<std::uint16_t>(0x01), At("0000:03:00.0"), At("0000:01:00.0")}};
  node.lldp_report = GoodLldpReport();
  node.rdma_exclusive = true;
  node.kubelet = doctor::KubeletFacts{"/var/lib/kubelet", true};
  node.hidden_netns = std::vector<std::string>{};
  node.other_namespaces = 0;
  node.rdma_order = std::vector<std::string>{"mlx5_0", "mlx5_1", "v00", "v01", "v10", "v11"};
  for (const int pf : {0, 1}) {
    const auto at = static_cast<std::size_t>(pf);
    node.rdma_functions["mlx5_" + std::to_string(pf)] = node.pfs[at].address;
    for (const std::size_t vf : {0U, 1U})
      node.rdma_functions["v" + std::to_string(pf) + std::to_string(vf)] = node.pfs[at].vfs[vf];
  }
  for (const auto& [device, function] : node.rdma_functions)
    node.node_guids[device] = "0c42:a103:0000:" + std::to_string(1000 + node.node_guids.size());
  node.runtimes = std::vector<doctor::ProcessFacts>{{4711, "containerd", std::string("unlimited")}};
  doctor::CdiSwitch cdi;
  cdi.path = "/etc/containerd/config.toml";
  cdi.version = 3;
  node.cdi = cdi;
  node.plugin_sockets = std::vector<std::string>{};
  node.cni = std::vector<doctor::CniUse>{{"10-calico.conflist", "calico", {}}};
  node.managed = std::vector<doctor::ManagedDevice>{{At("0000:03:00.2"), "pf0v0", {}}};
  node.net_admins = std::set<std::string>{};
  node.selinux = true;
  node.unreadable_mounts = std::map<std::string, std::string>{};
  node.open_files = std::vector<Error>{};
  node.records = doctor::RecordFacts{};
  node.gpu.nvidia = true;
  node.gpu.peermem = true;
  node.gpu.open = false;
  node.kernel = "6.1.0-44-amd64";
  node.gpu.nvml = true;
  node.verbs = true;
  node.rdma_cm = true;
  return node;
}

// The check's verdict is `status`, and says `text`; with a fix from warnings on.
inline void Expect(const doctor::Verdict& verdict, doctor::Status status, const std::string& text) {
  EXPECT_EQ(WordOf(verdict.status()), WordOf(status)) << verdict.Found();
  EXPECT_NE(verdict.Found().find(text), std::string::npos) << verdict.Found();
  if (status >= doctor::Status::kWarning) {
    EXPECT_NE(verdict.Fix(), "") << verdict.Found();
  }
}

// A good node whose rails have this changed.
inline doctor::NodeFacts WithRail(void (*change)(Rail*)) {
  doctor::NodeFacts node = GoodNode();
  Fabric fabric = *node.fabric;
  for (Rail& rail : fabric.rails) change(&rail);
  node.fabric = fabric;
  return node;
}

}  // namespace railhead::testing
