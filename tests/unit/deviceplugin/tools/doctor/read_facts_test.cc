// Facts that doctor reads from a node's files and queries from its kernel.
#include "deviceplugin/tools/doctor/read_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "deviceplugin/tools/doctor/facts.h"
#include "deviceplugin/tools/doctor/report.h"
#include "deviceplugin/tools/doctor/verdict.h"
#include "netns/sys/netdev_sysfs.h"
#include "tests/unit/deviceplugin/tools/doctor/node.h"
#include "tests/unit/deviceplugin/tools/doctor/support.h"

namespace railhead::testing {
namespace {

using doctor::NodeFacts;
using doctor::Status;

class ReadFactsTest : public ::testing::Test {
 protected:
  ReadFactsTest() {
    MakeDoctorNode(sysfs_);
    SaveLldpReport(std::chrono::system_clock::now());
    kernel_ = doctor::QuestionsFor(sysfs_.root());
    kernel_.dcb = [](const std::string&) { return std::optional<DcbState>(GoodDcb()); };
    kernel_.rdma_order = [] {
      return std::vector<std::string>{"mlx5_0", "mlx5_0v0", "mlx5_0v1", "mlx5_1", "mlx5_1v0", "mlx5_1v1"};
    };
    kernel_.vfs = [](const std::string&) {
      VfSettings limited;
      limited.rate = VfRate{0, 100000};
      limited.spoofchk = true;
      return std::map<int, VfSettings>{{0, limited}, {1, limited}};
    };
  }
  NodeFacts Read() { return doctor::ReadFacts(sysfs_.root(), kernel_); }
  // The verdict of one check.
  doctor::Verdict Judge(const std::string& id) {
    const auto checks = doctor::SelectChecks({id}, {});
    return checks->front()->judge(Read());
  }
  // As railheadd has found them.
  void SaveLldpReport(std::chrono::system_clock::time_point time) {
    lldp::LldpReport report = GoodLldpReport();
    report.node = "node0";
    report.time = time;
    ASSERT_TRUE(lldp::kLldpFile.Write(sysfs_.root(), report));
  }

  FakeSysfs sysfs_;
  doctor::KernelQuestions kernel_;
};

TEST_F(ReadFactsTest, AGoodNode) {
  const NodeFacts facts = Read();
  EXPECT_EQ(facts.node, "node0");
  ASSERT_EQ(facts.pfs.size(), 2U);
  EXPECT_EQ(facts.pfs[1].Name(), "pf1 (0000:83:00.0)");
  EXPECT_EQ(facts.pfs[1].rail, "rail1");
  EXPECT_EQ(facts.pfs[1].vfs.size(), 2U);
  EXPECT_EQ(facts.pfs[1].gids.size(), 2U) << "the PF's table, and a VF's";
  EXPECT_EQ(facts.rdma_functions.size(), 6U);
  EXPECT_EQ(facts.node_guids.size(), 6U);
  ASSERT_TRUE(facts.bridges);
  EXPECT_EQ(facts.bridges->size(), 4U) << "the downstream ports above the NICs and GPUs";
  // The VF's table has no entry yet, and configuration spaces show no SR-IOV here.
  const auto report = doctor::RunChecks(facts, *doctor::SelectChecks({}, {"sriov.ari", "rdma.gid-table"}));
  for (const auto& [check, verdict] : report.findings)
    EXPECT_EQ(WordOf(verdict.status()), "ok") << check->id << ": " << verdict.Found();
}

TEST_F(ReadFactsTest, TheClaimedIndexIsRead) {
  sysfs_.Write("/etc/railhead/fabric.json",
               R"({"version": 1, "rails": [{"name": "r", "pf": 0, "subnet": "10.0.0.0/24", "nodeBlock": 26}],
                   "addresses": {"index": {"from": "kubernetes"}}})");
  Expect(Judge("fabric.index"), Status::kFailure, "has not claimed an index");
  sysfs_.Write("/proc/sys/kernel/random/boot_id", "boot\n");
  const auto clock = ReadNodeIndexClock(sysfs_.root());
  ASSERT_TRUE(clock) << Describe(clock.error());
  NodeIndex index{.node = "node0", .index = 2, .claimed = true, .boot = clock->boot};
  index.boottime_ms = clock->boottime_ms;
  index.wall = clock->wall;
  index.fence = std::chrono::hours(12);
  ASSERT_TRUE(kNodeIndexFile.Write(sysfs_.root(), index));
  Expect(Judge("fabric.index"), Status::kOk, "has confirmed");
  index.unreadable = {"NodeIndex node-7: /uid: missing"};
  index.reclaim_problem = "removing node-5: forbidden";
  ASSERT_TRUE(kNodeIndexFile.Write(sysfs_.root(), index));
  Expect(Judge("fabric.index"), Status::kWarning, "node-7");
  Expect(Judge("fabric.index"), Status::kWarning, "forbidden");
  sysfs_.Write("/var/lib/railhead/node-index.json", "{");
  Expect(Judge("fabric.index"), Status::kSkipped, "node-index.json");
}

// By interface index, of the VFs and of a PF that has none.
TEST_F(ReadFactsTest, NetworkManagersOfTheHost) {
  const auto index = [&](const std::string& netdev) {
    return ReadNetdevAttribute(sysfs_.root(), netdev, "ifindex").value().value();
  };
  Expect(Judge("net.managed"), Status::kOk, "no network manager");
  sysfs_.Write("/run/systemd/netif/links/" + index("pf0"), "ADMIN_STATE=configured\n");
  sysfs_.Write("/run/systemd/netif/links/" + index("pf0v1"), "ADMIN_STATE=unmanaged\n");
  sysfs_.Write("/run/NetworkManager/devices/" + index("pf0v1"), "[device]\nmanaged=false\n");
  Expect(Judge("net.managed"), Status::kOk,
         "no network manager");  // of a PF with VFs it is the host's matter
  sysfs_.Write("/run/NetworkManager/devices/" + index("pf0v1"), "[device]\nmanaged=true\n");
  Expect(Judge("net.managed"), Status::kWarning, "pf0v1 (0000:43:02.1): managed by NetworkManager");
  sysfs_.Remove("/run/systemd");
  sysfs_.Remove("/run/NetworkManager");
  Expect(Judge("net.managed"), Status::kSkipped, "/run is not visible");
}

// The path that kubelet states for its pods counts, not the directory of the default name here.
TEST_F(ReadFactsTest, TheDirectoryOfPodsIsKubelets) {
  const auto run = [&](const std::string& arguments) {
    std::string line = "/usr/bin/kubelet " + arguments;
    std::replace(line.begin(), line.end(), ' ', '\0');
    sysfs_.Write("/proc/4712/cmdline", line);
  };
  for (const char* same : {"", "--v=2 --root-dir=/var/lib/kubelet/", "--root-dir /var/lib/kubelet"}) {
    run(same);
    Expect(Judge("runtime.kubelet"), Status::kOk, "--root-dir /var/lib/kubelet");
  }
  sysfs_.Write("/data/kubelet/pods/uid/etc-hosts", "");
  for (const char* other : {"--root-dir=/data/kubelet", "--root-dir /data/kubelet --v=2"}) {
    run(other);
    Expect(Judge("runtime.kubelet"), Status::kFailure, "kubelet has its pods in /data/kubelet/pods");
  }
  sysfs_.Remove("/var/lib/kubelet/pods");
  Expect(Judge("runtime.kubelet"), Status::kFailure, "or absent");
  sysfs_.Link("/var/lib/kubelet/pods", "/data/kubelet/pods");
  Expect(Judge("runtime.kubelet"), Status::kOk, "/data/kubelet");
  sysfs_.Remove("/proc/4712");
  Expect(Judge("runtime.kubelet"), Status::kSkipped, "no process called kubelet");
}

TEST_F(ReadFactsTest, NamespacesThatComeLater) {
  std::filesystem::create_directories(sysfs_.directory() + "/run/netns");
  const auto mount = [&](const std::string& tags) {
    sysfs_.Write("/proc/self/mountinfo", "1 0 0:1 / / rw shared:1 - ext4 x rw\n2 1 0:2 / /run/netns rw" +
                                             tags + " - tmpfs tmpfs rw\n");
  };
  mount("");
  Expect(Judge("runtime.netns"), Status::kFailure, "/run/netns is on a private mount");
  for (const char* seen : {" shared:7", " master:3", " shared:7 master:3", " master:3 propagate_from:2"}) {
    mount(seen);
    Expect(Judge("runtime.netns"), Status::kOk, "show here");
  }
}

TEST_F(ReadFactsTest, WhatIsDrained) {
  sysfs_.Write("/var/lib/railhead/drains.json", "{");
  Expect(Judge("node.records"), Status::kFailure, "the list of drained devices cannot be read");
}

TEST_F(ReadFactsTest, TheAddressStore) {
  Expect(Judge("node.records"), Status::kOk, "all entries, drains and addresses can be read");
  sysfs_.Write("/var/lib/railhead/ipam/store.mdb", "no store\n");
  Expect(Judge("node.records"), Status::kFailure, "the address store cannot be read");
}

TEST_F(ReadFactsTest, WhatTheKernelRefuses) {
  kernel_ = doctor::QuestionsFor(sysfs_.root());
  for (const char* id : {"qos.dscp", "qos.pfc", "qos.ets", "qos.ecn", "sriov.vf-order"})
    Expect(Judge(id), Status::kSkipped, "RAILHEAD_ROOT is set");
  kernel_.dcb = [](const std::string&) { return std::optional<DcbState>(); };
  Expect(Judge("qos.pfc"), Status::kSkipped, "its driver has no DCB");
}

TEST_F(ReadFactsTest, AcsAndIommu) {
  sysfs_.Write("/sys/bus/pci/devices/0000:82:04.0/config", AcsConfig(0x1d));
  Expect(Judge("pci.acs"), Status::kFailure, "bridge 0000:82:04.0 between 0000:83:00.0 and 0000:87:00.0");
  // The bridge that both are below redirects nothing between them.
  sysfs_.Write("/sys/bus/pci/devices/0000:82:04.0/config", AcsConfig(0));
  sysfs_.Write("/sys/bus/pci/devices/0000:81:00.0/config", AcsConfig(0x1d));
  Expect(Judge("pci.acs"), Status::kOk, "0000:42:00.0: no ACS");
  sysfs_.Link("/sys/bus/pci/devices/0000:83:00.0/iommu_group", "/sys/kernel/iommu_groups/17");
  sysfs_.Write("/sys/kernel/iommu_groups/17/type", "DMA-FQ\n");
  Expect(Judge("pci.iommu"), Status::kWarning, "pf1 (0000:83:00.0): the IOMMU translates (DMA-FQ)");
  sysfs_.Write("/sys/kernel/iommu_groups/17/type", "identity\n");
  Expect(Judge("pci.iommu"), Status::kOk, "pf1 (0000:83:00.0): identity");
}

TEST_F(ReadFactsTest, FabricAndRails) {
  sysfs_.Write("/etc/railhead/fabric.json",
               R"({"version": 1, "rails": [{"name": "a", "pf": "pf0", "vlan": 4095}]})");
  Expect(Judge("fabric.valid"), Status::kFailure, "/rails/0/vlan");
  sysfs_.Write("/etc/railhead/fabric.json",
               R"({"version": 1, "rails": [{"name": "a", "pf": "pf0"}, {"name": "b", "pf": "pf7"}]})");
  Expect(Judge("fabric.rails"), Status::kWarning, "no PF of this node is rail b");
  EXPECT_EQ(Read().pfs.size(), 1U) << "PFs without rail are not looked at";
  sysfs_.Remove("/etc/railhead/fabric.json");
  Expect(Judge("fabric.valid"), Status::kFailure, "no such file: /etc/railhead/fabric.json");
  EXPECT_EQ(Read().pfs.size(), 2U) << "without a fabric, all that could carry a rail";
}

// A PF that is in a pod is still its rail's, by the name that railheadd remembers.
TEST_F(ReadFactsTest, APfInAPod) {
  sysfs_.MoveToPod("0000:83:00.0");
  Expect(Judge("fabric.rails"), Status::kWarning, "rail1");
  sysfs_.Write("/run/railhead/pfs.json",
               R"({"version": 1, "pfs": [{"pf": "0000:83:00.0", "driver": "mlx5_core", "name": "pf1"}]})");
  EXPECT_EQ(Judge("fabric.rails").status(), Status::kOk);
  const NodeFacts facts = Read();
  ASSERT_EQ(facts.pfs.size(), 2U);
  EXPECT_EQ(facts.pfs[1].netdev, "");
  EXPECT_EQ(facts.pfs[1].mtu.why(), "its network device is not in this namespace");
}

TEST_F(ReadFactsTest, RdmaModeAndNamespaces) {
  sysfs_.Write("/sys/module/ib_core/parameters/netns_mode", "N\n");
  Expect(Judge("rdma.netns-mode"), Status::kFailure, "the mode is exclusive, fabric.json states shared");
  EXPECT_EQ(*Read().other_namespaces, 0);
  sysfs_.Write("/proc/4712/comm", "pause\n");
  std::filesystem::create_directories(sysfs_.directory() + "/proc/4712/ns");
  std::filesystem::create_symlink("net:[4026532000]", sysfs_.directory() + "/proc/4712/ns/net");
  EXPECT_EQ(*Read().other_namespaces, 1);
  // A container sees only its own processes, so it cannot rule out other namespaces.
  sysfs_.Remove("/proc/self/ns/pid");
  std::filesystem::create_symlink("pid:[4026532001]", sysfs_.directory() + "/proc/self/ns/pid");
  EXPECT_EQ(*Read().other_namespaces, 1);
  sysfs_.Remove("/proc/4712");
  EXPECT_FALSE(Read().other_namespaces);
  sysfs_.Remove("/sys/module/ib_core");
  Expect(Judge("rdma.netns-mode"), Status::kSkipped, "ib_core is not loaded");
}

TEST_F(ReadFactsTest, PortsAndGids) {
  sysfs_.Write("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  Expect(Judge("rdma.port"), Status::kFailure, "mlx5_0");
  Expect(Judge("rdma.gid-table"), Status::kWarning, "mlx5_0v0 has no GIDs");
}

TEST_F(ReadFactsTest, TablesOfVfsInPodsAreNotRead) {
  sysfs_.MoveToPod("0000:43:02.0");
  const NodeFacts facts = Read();
  ASSERT_EQ(facts.pfs[0].gids.size(), 2U);
  EXPECT_EQ(facts.pfs[0].gids[1].device, "mlx5_0v1");
}

TEST_F(ReadFactsTest, NetworkSettings) {
  sysfs_.Write("/sys/class/net/pf1/mtu", "4200\n");
  Expect(Judge("net.mtu"), Status::kFailure, "pf1 (0000:83:00.0): MTU 4200");
  // The larger of both counts.
  sysfs_.Write("/proc/sys/net/ipv4/conf/all/rp_filter", "1\n");
  Expect(Judge("net.arp"), Status::kWarning, "rp_filter is strict");
  sysfs_.Write("/proc/sys/net/ipv4/conf/pf0/rp_filter", "2\n");
  sysfs_.Write("/proc/sys/net/ipv4/conf/pf1/rp_filter", "2\n");
  EXPECT_EQ(Judge("net.arp").status(), Status::kOk);
  sysfs_.Write("/sys/class/net/pf1/ecn/roce_np/enable/3", "0\n");
  Expect(Judge("qos.ecn"), Status::kWarning, "ECN is not on for priority 3 of rail1");
  sysfs_.Remove("/sys/class/net/pf1/ecn");
  sysfs_.Remove("/sys/class/net/pf0/ecn");
  Expect(Judge("qos.ecn"), Status::kSkipped, "only OFED's driver shows ECN");
}

TEST_F(ReadFactsTest, NodeSettings) {
  sysfs_.Write("/proc/4711/limits",
               "Max locked memory         65536                65536                bytes\n");
  Expect(Judge("node.memlock"), Status::kWarning, "containerd (process 4711) may lock 65536 bytes only");
  sysfs_.Write("/sys/class/infiniband/mlx5_1/fw_ver", "28.39.3560\n");
  Expect(Judge("node.firmware"), Status::kWarning, "firmware 28.39.3560, unlike pf0");
  sysfs_.Remove("/sys/class/misc/rdma_cm");
  Expect(Judge("node.modules"), Status::kWarning, "rdma_ucm is not loaded");
  sysfs_.Remove("/sys/module/nvidia_peermem");
  sysfs_.Write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54\n");
  Expect(Judge("gpu.direct"), Status::kFailure, "nvidia_peermem is not loaded");
  sysfs_.Write("/proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54\n");
  sysfs_.Write("/proc/sys/kernel/osrelease", "6.1.0-44-amd64\n");
  Expect(Judge("gpu.direct"), Status::kOk, "dma-buf");
  Expect(Judge("node.kernel"), Status::kOk, "Linux 6.1.0-44-amd64");
}

// As the kernel and both cgroup drivers of kubelet have them.
TEST_F(ReadFactsTest, PodsWithNetAdminInTheHostsUserNamespace) {
  constexpr const char* kAll = "CapPrm:\t0000000000000000\nCapBnd:\t000001ffffffffff\n";
  constexpr const char* kOnlyNetAdmin = "CapBnd:\t0000000000001000\n";
  constexpr const char* kDefault = "CapBnd:\t00000000a80425fb\n";  // containerd's
  constexpr const char* kHostIds = "         0          0 4294967295\n";
  constexpr const char* kOwnIds = "         0   65536      65536\n";
  const std::map<std::string, std::string> pods = {
      {"11-1", "jobs/all"}, {"11-2", "jobs/only"}, {"11-3", "jobs/default"}, {"11-4", "jobs/own-users"}};
  const auto process = [&](const std::string& pid, const std::string& cgroup, const char* status,
                           const char* ids) {
    sysfs_.Write("/proc/" + pid + "/cgroup", "0::" + cgroup + "\n");
    sysfs_.Write("/proc/" + pid + "/status", status);
    sysfs_.Write("/proc/" + pid + "/uid_map", ids);
  };
  process("900", "/kubepods/besteffort/pod11-1/c1", kAll, kHostIds);
  process("901", "/kubepods.slice/kubepods-pod11_2.slice/cri-c2.scope", kOnlyNetAdmin, kHostIds);
  process("902", "/kubepods/pod11-3/c3", kDefault, kHostIds);
  process("903", "/kubepods/pod11-4/c4", kAll, kOwnIds);
  process("904", "/system.slice/kubelet.service", kAll, kHostIds);
  EXPECT_EQ(*doctor::ReadNetAdmins(sysfs_.root(), pods), (std::set<std::string>{"jobs/all", "jobs/only"}));
  sysfs_.Remove("/proc/self/ns/pid");
  EXPECT_FALSE(doctor::ReadNetAdmins(sysfs_.root(), pods)) << "the pods' processes are not seen";
}

// railheadd looks where its own root is, which may be a container's.
TEST_F(ReadFactsTest, TheProgramThatKnowsMigSlices) {
  Expect(Judge("gpu.ids"), Status::kOk, "has railhead-nvml");
  sysfs_.Remove("/usr/bin/railhead-nvml");
  Expect(Judge("gpu.ids"), Status::kNote, "no railhead-nvml");
  sysfs_.Write("/usr/libexec/railhead/railhead-nvml", "");
  Expect(Judge("gpu.ids"), Status::kOk, "has railhead-nvml");
  sysfs_.Remove("/proc/4713");
  Expect(Judge("gpu.ids"), Status::kSkipped, "railheadd does not run");
}

TEST_F(ReadFactsTest, CablingAsRailheaddHasFoundIt) {
  Expect(Judge("fabric.cabling"), Status::kOk, "rail0: leaf0");
  SaveLldpReport(std::chrono::system_clock::now() - std::chrono::hours(1));
  Expect(Judge("fabric.cabling"), Status::kSkipped, "does not run");
  sysfs_.Remove("/run/railhead/lldp.json");
  Expect(Judge("fabric.cabling"), Status::kSkipped, "has not run since the boot");
}

TEST_F(ReadFactsTest, FirmwareByDevlink) {
  sysfs_.Remove("/sys/class/infiniband/mlx5_1/fw_ver");
  EXPECT_FALSE(Read().pfs[1].firmware);
  kernel_.versions = [](const std::string& address) {
    return std::map<std::string, std::string>{{"fw.version", "of " + address}};
  };
  EXPECT_EQ(*Read().pfs[1].firmware, "of 0000:83:00.0");
  EXPECT_EQ(*Read().pfs[0].firmware, "28.41.1000") << "sysfs has it";
}

TEST_F(ReadFactsTest, ADeviceWithoutNodeGuid) {
  sysfs_.Write("/sys/class/infiniband/mlx5_1/node_guid", "0000:0000:0000:0000\n");
  Expect(Judge("rdma.node-guid"), Status::kWarning, "no node GUID: mlx5_1");
}

// An unreadable sysfs does not mean a node without rails.
TEST_F(ReadFactsTest, PfsThatCannotBeRead) {
  sysfs_.Write("/sys/bus/pci/devices/0000:83:00.0/sriov_totalvfs", "many\n");
  const NodeFacts facts = Read();
  for (const char* id : {"fabric.rails", "rdma.port", "rdma.gid-table", "net.mtu", "net.arp", "qos.pfc",
                         "sriov.vfs", "sriov.ari", "sriov.bandwidth", "node.firmware", "runtime.cni"}) {
    const auto verdict = doctor::SelectChecks({id}, {})->front()->judge(facts);
    Expect(verdict, Status::kSkipped, "holds 'many', not a number");
  }
}

TEST_F(ReadFactsTest, AnEmptyNode) {
  const FakeSysfs empty;
  const NodeFacts facts = doctor::ReadFacts(empty.root(), doctor::QuestionsFor(empty.root()));
  const auto report = doctor::RunChecks(facts, *doctor::SelectChecks({}, {}));
  EXPECT_EQ(report.Count(Status::kFailure), 2) << "no fabric.json, no ib_uverbs\n" << ReportAsText(report);
  EXPECT_EQ(report.Count(Status::kWarning), 0) << ReportAsText(report);
}

}  // namespace
}  // namespace railhead::testing
