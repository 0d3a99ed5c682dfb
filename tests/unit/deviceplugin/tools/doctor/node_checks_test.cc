// Limits, modules, firmware, records; the CDI switch, other device plugins, CNI configurations: judged and
// read.
#include "deviceplugin/tools/doctor/facts.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/tools/doctor/support.h"

namespace railhead::testing {
namespace {

using doctor::CdiSwitch;
using doctor::Status;

TEST(CdiTest, Containerd) {
  doctor::NodeFacts node = GoodNode();
  CdiSwitch cdi;
  cdi.path = "/etc/containerd/config.toml";
  cdi.version = 2;
  node.cdi = cdi;
  Expect(doctor::CheckCdi(node), Status::kWarning, "does not say enable_cdi");
  cdi.enabled = true;
  node.cdi = cdi;
  Expect(doctor::CheckCdi(node), Status::kOk, "enable_cdi = true");
  cdi.enabled = false;
  cdi.version = 3;
  node.cdi = cdi;
  Expect(doctor::CheckCdi(node), Status::kFailure, "enable_cdi = false");
  cdi.enabled = std::nullopt;
  cdi.directories = std::vector<std::string>{"/etc/cdi"};
  node.cdi = cdi;
  Expect(doctor::CheckCdi(node), Status::kFailure, "cdi_spec_dirs without /var/run/cdi");
}

TEST(CdiTest, OtherRuntimesAndPools) {
  doctor::NodeFacts node = GoodNode();
  CdiSwitch cdi;
  cdi.runtime = CdiSwitch::Runtime::kCrio;
  node.cdi = cdi;
  Expect(doctor::CheckCdi(node), Status::kOk, "CRI-O");
  Fabric fabric = *node.fabric;
  fabric.pools[0].device_nodes = DeviceNodeMode::kMount;
  node.fabric = fabric;
  Expect(doctor::CheckCdi(node), Status::kSkipped, "no pool delivers by CDI");
}

TEST(PluginsTest, Others) {
  doctor::NodeFacts node = GoodNode();
  node.plugin_sockets = std::vector<std::string>{"nvidia-gpu.sock"};
  EXPECT_EQ(doctor::CheckPlugins(node).status(), Status::kOk);
  for (const char* socket : {"nvidia-gpu.sock", "openshift.io_SRIOV_net.sock", "rdma_shared_device_a.sock"}) {
    node.plugin_sockets = std::vector<std::string>{"nvidia-gpu.sock", socket};
    const bool conflict = std::string(socket) != "nvidia-gpu.sock";
    EXPECT_EQ(doctor::CheckPlugins(node).status(), conflict ? Status::kWarning : Status::kOk) << socket;
  }
}

TEST(CniTest, WhoTakesOurDevices) {
  doctor::NodeFacts node = GoodNode();
  for (const char* device : {"pf1", "0000:13:00.0", "0000:13:00.3"}) {
    node.cni = std::vector<doctor::CniUse>{{"20-nic.conf", "host-device", {device}}};
    Expect(doctor::CheckCni(node), Status::kFailure, std::string("20-nic.conf: host-device takes ") + device);
  }
  node.cni = std::vector<doctor::CniUse>{{"20-nic.conf", "macvlan", {"pf0"}}};
  Expect(doctor::CheckCni(node), Status::kWarning, "macvlan stacks on pf0");
  node.cni =
      std::vector<doctor::CniUse>{{"20-nic.conf", "macvlan", {"eth0"}}, {"30.conf", "host-device", {"eth1"}}};
  EXPECT_EQ(doctor::CheckCni(node).status(), Status::kOk);
  node.cni = std::vector<doctor::CniUse>{{"20-nic.conf", "rdma", {}}};
  Expect(doctor::CheckCni(node), Status::kNote, "rdma attaches the same kind");
}

TEST(RoutesTest, WhatCoversANetworkOfTheCluster) {
  const auto prefix = [](const char* text) { return *IpPrefix::Parse(text); };
  const auto judge = [&](const char* route, const char* network, const char* own) {
    doctor::NodeFacts node = GoodNode();
    Fabric fabric = *node.fabric;
    fabric.rails[1].routes = {prefix(route)};
    node.fabric = fabric;
    doctor::CniUse use{"10-kindnet.conflist", "ptp", {}};
    use.networks = {prefix(network)};
    if (own != nullptr) use.routes = {prefix(own)};
    node.cni = std::vector<doctor::CniUse>{use};
    return doctor::CheckRoutes(node);
  };
  Expect(judge("10.0.0.0/8", "10.244.1.0/24", nullptr), Status::kWarning,
         "/rails/1/routes/0: 10.0.0.0/8 takes the pods' traffic to 10.244.1.0/24, a network of "
         "10-kindnet.conflist (ptp)");
  Expect(judge("fd00::/8", "fd00:10:96::/112", nullptr), Status::kWarning, "fd00:10:96::/112");
  EXPECT_EQ(judge("10.244.0.0/16", "10.244.0.0/16", nullptr).status(), Status::kWarning);
  EXPECT_EQ(judge("10.100.0.0/14", "10.244.1.0/24", nullptr).status(), Status::kOk);
  EXPECT_EQ(judge("0.0.0.0/0", "10.244.1.0/24", nullptr).status(), Status::kOk) << "eth0's metric is less";
  EXPECT_EQ(judge("10.0.0.0/8", "10.244.1.0/24", "10.244.0.0/16").status(), Status::kOk)
      << "eth0 has a route";
  EXPECT_EQ(judge("10.0.0.0/8", "10.244.1.0/24", "10.0.0.0/8").status(), Status::kOk);
  EXPECT_EQ(judge("10.0.0.0/8", "10.244.1.0/24", "0.0.0.0/1").status(), Status::kWarning) << "less specific";
}

TEST(ManagedTest, EachDeviceOfAManager) {
  doctor::NodeFacts node = GoodNode();
  node.managed = std::vector<doctor::ManagedDevice>{
      {At("0000:03:00.2"), "pf0v0", {}},
      {At("0000:03:00.3"), "pf0v1", {"NetworkManager", "systemd-networkd"}}};
  Expect(doctor::CheckManaged(node), Status::kWarning,
         "pf0v1 (0000:03:00.3): managed by NetworkManager and systemd-networkd");
  node.managed = std::vector<doctor::ManagedDevice>{};
  EXPECT_EQ(doctor::CheckManaged(node).status(), Status::kOk);
  node.managed = doctor::Fact<std::vector<doctor::ManagedDevice>>::Unknown("no /run");
  Expect(doctor::CheckManaged(node), Status::kSkipped, "no /run");
}

TEST(FilesCheckTest, OneWarningForEach) {
  doctor::NodeFacts node = GoodNode();
  EXPECT_EQ(doctor::CheckFiles(node).status(), Status::kOk);
  node.open_files = std::vector<Error>{{ErrorCode::kPermission, "/a may be written to", "chmod go-w /a", 0},
                                       {ErrorCode::kPermission, "/b may be written to", "chmod go-w /b", 0}};
  const doctor::Verdict verdict = doctor::CheckFiles(node);
  Expect(verdict, Status::kWarning, "/a may be written to; /b may be written to");
  EXPECT_EQ(verdict.Fix(), "chmod go-w /a");
  node.open_files = doctor::Fact<std::vector<Error>>::Unknown("Permission denied");
  Expect(doctor::CheckFiles(node), Status::kSkipped, "Permission denied");
}

TEST(SelinuxCheckTest, FilesThatContainersCannotRead) {
  doctor::NodeFacts node = GoodNode();
  EXPECT_EQ(doctor::CheckSelinux(node).status(), Status::kOk);
  const std::string path = "/run/railhead/nccl/c1/nccl.conf";
  node.unreadable_mounts = std::map<std::string, std::string>{{path, "system_u:object_r:var_run_t:s0"}};
  Expect(doctor::CheckSelinux(node), Status::kWarning, path + ": labelled system_u:object_r:var_run_t:s0");
  EXPECT_EQ(doctor::CheckSelinux(node).Fix(), "chcon -t container_file_t " + path);
  node.selinux = false;
  EXPECT_EQ(doctor::CheckSelinux(node).status(), Status::kOk);
}

TEST(NetAdminsTest, EachPodIsNamed) {
  doctor::NodeFacts node = GoodNode();
  EXPECT_EQ(doctor::CheckNetAdmins(node).status(), Status::kOk);
  node.net_admins = std::set<std::string>{"jobs/a", "jobs/b"};
  Expect(doctor::CheckNetAdmins(node), Status::kWarning, "pod jobs/b has CAP_NET_ADMIN");
  node.net_admins = doctor::Fact<std::set<std::string>>::Unknown("no /proc");
  Expect(doctor::CheckNetAdmins(node), Status::kSkipped, "no /proc");
}

class RuntimeTest : public ::testing::Test {
 protected:
  doctor::NodeFacts Read(const std::vector<std::string>& running = {}) {
    doctor::NodeFacts facts;
    std::vector<doctor::ProcessFacts> processes;
    for (const std::string& name : running) processes.push_back({1, name, {}});
    facts.runtimes = processes;
    ReadRuntime(temp_.root(), &facts);
    return facts;
  }
  TempRoot temp_;
};

TEST_F(RuntimeTest, ContainerdWithImports) {
  temp_.Write("/etc/containerd/config.toml",
              "version = 3\nimports = ['/etc/containerd/conf.d/*.toml', 'more.toml']\n");
  EXPECT_EQ(Read().cdi->enabled, std::nullopt);
  EXPECT_EQ(Read().cdi->version, 3);
  temp_.Write("/etc/containerd/conf.d/10-cdi.toml",
              "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = false\n");
  EXPECT_EQ(Read().cdi->enabled, false);
  EXPECT_EQ(Read().cdi->version, 3);
  temp_.Write("/etc/containerd/more.toml", "[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = true\n");
  EXPECT_EQ(Read().cdi->enabled, true);
  // A distribution's own containerd has its own file.
  temp_.Write("/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "version = 2\n");
  EXPECT_EQ(Read().cdi->version, 2);
}

// All ways of TOML to write the same.
TEST_F(RuntimeTest, ContainerdHoweverItIsWritten) {
  for (const char* text :
       {"[plugins.'io.containerd.grpc.v1.cri']\n  enable_cdi = true # '='\n  cdi_spec_dirs = [\n'/etc/cdi', "
        "# a\n "
        "\"/b\",\n]\n",
        "plugins.\"io.containerd.grpc.v1.cri\" = { enable_cdi = true, cdi_spec_dirs = ['/etc/cdi', '/b'] }\n",
        "[plugins]\n\"io.containerd.cri.v1.runtime\".enable_cdi = true\n"
        "\"io.containerd.cri.v1.runtime\".cdi_spec_dirs = ['''/etc/cdi''', \"/\\u0062\"]\n",
        "[plugins.cri]\nenable_cdi = true\ncdi_spec_dirs = ['/etc/cdi', '/b']\n"}) {
    temp_.Write("/etc/containerd/config.toml", text);
    const auto facts = Read();
    ASSERT_TRUE(facts.cdi) << facts.cdi.why();
    EXPECT_EQ(facts.cdi->enabled, true) << text;
    EXPECT_EQ(facts.cdi->directories, (std::vector<std::string>{"/etc/cdi", "/b"})) << text;
  }
}

// A runtime refuses to start with it, so nothing can be said of what it would do.
TEST_F(RuntimeTest, WhatIsNoTomlIsNamedWithItsLine) {
  temp_.Write("/etc/containerd/config.toml", "imports = ['odd.toml']\n");
  for (const char* odd : {"\n=", "\n[", "\na=[", "\na = [\n[b]\n", "\n\"", "\na = 1\na = 2\n", "\n[plugins\n",
                          "\na = \xff\n"}) {
    temp_.Write("/etc/containerd/odd.toml", odd);
    const auto facts = Read();
    ASSERT_FALSE(facts.cdi) << odd;
    EXPECT_NE(facts.cdi.why().find("/etc/containerd/odd.toml line "), std::string::npos) << facts.cdi.why();
  }
}

TEST_F(RuntimeTest, WhichRuntime) {
  EXPECT_FALSE(Read().cdi);
  const auto defaults = Read({"containerd"});
  ASSERT_TRUE(defaults.cdi);
  EXPECT_EQ(defaults.cdi->path, "");
  Expect(doctor::CheckCdi(defaults), Status::kWarning, "containerd without configuration does not say");
  temp_.Write("/etc/crio/crio.conf.d/10.conf", "[crio.runtime]\ncdi_spec_dirs = [\n\"/etc/cdi\"\n]\n");
  Expect(doctor::CheckCdi(Read()), Status::kFailure, "cdi_spec_dirs");
  temp_.Write("/etc/containerd/config.toml", "version = 3\n");
  EXPECT_EQ(Read().cdi->runtime, CdiSwitch::Runtime::kContainerd);
  EXPECT_EQ(Read({"crio"}).cdi->runtime, CdiSwitch::Runtime::kCrio);
}

TEST_F(RuntimeTest, Sockets) {
  EXPECT_FALSE(Read().plugin_sockets);
  for (const char* name : {"kubelet.sock", "railhead-roce-1-2-0.sock", "nvidia-gpu.sock", "DEPRECATION"})
    temp_.Write(std::string("/var/lib/kubelet/device-plugins/") + name, "");
  temp_.Write("/var/lib/kubelet/plugins_registry/sriov.sock", "");
  const auto facts = Read();
  ASSERT_TRUE(facts.plugin_sockets);
  EXPECT_EQ(*facts.plugin_sockets, (std::vector<std::string>{"nvidia-gpu.sock", "sriov.sock"}));
}

TEST_F(RuntimeTest, CniConfigurations) {
  EXPECT_FALSE(Read().cni);
  temp_.Write(
      "/etc/cni/net.d/10-a.conflist",
      R"({"name": "a", "plugins": [{"type": "ptp"}, {"type": "host-device", "pciBusID": "0000:13:00.0"}]})");
  temp_.Write("/etc/cni/net.d/20-b.conf", R"({"name": "b", "type": "macvlan", "master": "pf0"})");
  temp_.Write("/etc/cni/net.d/30-broken.conf", "{");
  temp_.Write("/etc/cni/net.d/readme", R"({"type": "sriov"})");
  const auto facts = Read();
  ASSERT_TRUE(facts.cni);
  ASSERT_EQ(facts.cni->size(), 3U);
  EXPECT_EQ((*facts.cni)[1].type, "host-device");
  EXPECT_EQ((*facts.cni)[1].devices, (std::vector<std::string>{"0000:13:00.0"}));
  EXPECT_TRUE((*facts.cni)[1].networks.empty()) << "of another network";
  EXPECT_EQ((*facts.cni)[2].file, "20-b.conf");
  EXPECT_EQ((*facts.cni)[2].devices, (std::vector<std::string>{"pf0"}));
}

// As kindnet, Calico and a plugin with a key of its own write them.
TEST_F(RuntimeTest, NetworksOfTheCluster) {
  temp_.Write("/etc/cni/net.d/10-k.conflist", R"({"name": "k", "plugins": [
    {"type": "ptp", "ipMasq": false, "mtu": 1500, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
     "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.96.0.0/12", "gw": "10.244.1.1"}],
     "ranges": [[{"subnet": "10.244.1.7/24", "gateway": "10.244.1.1"}], [{"subnet": "fd00:10:244::/64"}]]}},
    {"type": "portmap", "capabilities": {"portMappings": true}},
    {"type": "railhead", "ipam": {"type": "railhead-ipam", "subnet": "10.100.0.0/16"}}]})");
  temp_.Write("/etc/cni/net.d/20-c.conf", R"({"name": "c", "type": "calico",
    "ipam": {"type": "calico-ipam", "ipv4_pools": ["192.168.0.0/16", "default-pool"]}, "serviceCIDR": "10.96.0.0/12"})");
  const auto facts = Read();
  ASSERT_TRUE(facts.cni);
  std::vector<std::string> networks;
  std::vector<std::string> routes;
  for (const doctor::CniUse& use : *facts.cni) {
    for (const IpPrefix& network : use.networks) networks.push_back(network.ToString());
    for (const IpPrefix& route : use.routes) routes.push_back(route.ToString());
  }
  EXPECT_EQ(networks, (std::vector<std::string>{"10.244.1.0/24", "fd00:10:244::/64", "192.168.0.0/16",
                                                "10.96.0.0/12"}));
  EXPECT_EQ(routes, std::vector<std::string>{"10.96.0.0/12"});
}

TEST(MemlockTest, ALimit) {
  doctor::NodeFacts node = GoodNode();
  node.runtimes = std::vector<doctor::ProcessFacts>{{4711, "containerd", std::string("8388608")}};
  const auto verdict = doctor::CheckMemlock(node);
  Expect(verdict, Status::kWarning, "containerd (process 4711) may lock 8388608 bytes only");
  EXPECT_NE(verdict.Fix().find("LimitMEMLOCK=infinity"), std::string::npos);
  node.runtimes = std::vector<doctor::ProcessFacts>{};
  Expect(doctor::CheckMemlock(node), Status::kSkipped, "hostPID");
}

TEST(KernelTest, WhatAnOldOneLacks) {
  doctor::NodeFacts node = GoodNode();
  for (const char* enough : {"5.10.0-32-amd64", "5.14.0-427.el9", "6.1.0-44-amd64", "7.0"}) {
    node.kernel = enough;
    Expect(doctor::CheckKernel(node), Status::kOk, enough);
  }
  for (const char* old : {"5.4.0-216-generic", "5.9"}) {
    node.kernel = old;
    Expect(doctor::CheckKernel(node), Status::kWarning, "older than 5.10");
  }
  for (const char* ancient : {"4.18.0-553.el8", "5.3.18-150300"}) {
    node.kernel = ancient;
    Expect(doctor::CheckKernel(node), Status::kFailure, "older than 5.4");
  }
  for (const char* unknown : {"", "5", "five.ten", "5."}) {
    node.kernel = unknown;
    Expect(doctor::CheckKernel(node), Status::kSkipped, "not known");
  }
}

TEST(KernelTest, SoftRoceInPods) {
  doctor::NodeFacts node = GoodNode();
  Fabric fabric = *node.fabric;
  fabric.rails[0].soft_roce = true;
  node.fabric = fabric;
  node.kernel = "6.12.0";
  Expect(doctor::CheckKernel(node), Status::kWarning, "soft RoCE");
  node.kernel = "7.0.1";
  EXPECT_EQ(doctor::CheckKernel(node).status(), Status::kOk);
}

TEST(ModulesTest, WhatIsMissing) {
  doctor::NodeFacts node = GoodNode();
  node.rdma_cm = false;
  Expect(doctor::CheckModules(node), Status::kWarning, "rdma_ucm");
  node.verbs = false;
  Expect(doctor::CheckModules(node), Status::kFailure, "ib_uverbs");
  node = GoodNode();
  node.pfs[1].rdma.clear();
  const auto verdict = doctor::CheckModules(node);
  Expect(verdict, Status::kFailure, "pf1 (0000:13:00.0) (mlx5_core) has no RDMA device");
  EXPECT_EQ(verdict.Fix(), "modprobe mlx5_ib");
  node.pfs[1].netdev.clear();  // in a pod
  EXPECT_EQ(doctor::CheckModules(node).status(), Status::kOk);
}

TEST(ModulesTest, SoftRoce) {
  doctor::NodeFacts node = GoodNode();
  Fabric fabric = *node.fabric;
  fabric.rails[1].soft_roce = true;
  node.fabric = fabric;
  node.pfs[1].rdma.clear();
  Expect(doctor::CheckModules(node), Status::kNote, "rdma_rxe is not loaded");
  node.rxe = true;
  EXPECT_EQ(doctor::CheckModules(node).status(), Status::kOk);
}

TEST(FirmwareTest, OneKindOneFirmware) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].firmware = std::string("28.39.3560");
  Expect(doctor::CheckFirmware(node), Status::kWarning,
         "pf1 (0000:13:00.0): 15b3:1021, mlx5_core, firmware 28.39.3560, unlike pf0 (0000:03:00.0) with "
         "28.41.1000");
  node.pfs[1].device = 0x1017;  // another kind of NIC
  EXPECT_EQ(doctor::CheckFirmware(node).status(), Status::kOk);
}

TEST(RecordsTest, UnreadableEntriesAndSubstituteNames) {
  doctor::NodeFacts node = GoodNode();
  EXPECT_EQ(doctor::CheckRecords(node).status(), Status::kOk);
  doctor::RecordFacts records;
  records.displaced["0000:43:10.0"] = "eth13";
  node.records = records;
  Expect(doctor::CheckRecords(node), Status::kWarning, "another interface is called eth13");
  records.displaced.clear();
  records.altered_specs = {"railhead-0000:43:10.0.json"};
  node.records = records;
  Expect(doctor::CheckRecords(node), Status::kWarning,
         "/run/cdi/railhead-0000:43:10.0.json was removed or changed");
  records.altered_specs.clear();
  ConflictSource liar;
  liar.mac = *MacAddress::Parse("02:00:00:00:00:07");
  liar.answers = 5;
  liar.pod = "jobs/liar";
  records.conflict_sources.push_back(liar);
  node.records = records;
  Expect(doctor::CheckRecords(node), Status::kWarning, "02:00:00:00:00:07 (pod jobs/liar) answers for");
  records.conflict_sources.clear();
  records.store_error = Error{ErrorCode::kIo, "page 7 is missing", "railctl ipam", 0};
  node.records = records;
  Expect(doctor::CheckRecords(node), Status::kFailure, "the address store cannot be read: page 7 is missing");
  records.store_error = std::nullopt;
  records.unreadable.push_back({{"rails", "c1", "net1"}, "/run/x.json", {"0000:43:10.1"}, {}});
  node.records = records;
  const auto verdict = doctor::CheckRecords(node);
  Expect(verdict, Status::kFailure, "c1/rails@net1 of 0000:43:10.1 cannot be read");
  EXPECT_NE(verdict.Fix().find("railctl journal restore /run/x.json"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
