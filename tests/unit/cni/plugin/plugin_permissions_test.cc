// What the author of a network, and a pod that requests one, may not do: the policy of the node's fabric.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "cni/fabric/fabric.h"
#include "cni/fabric/network_policy.h"
#include "cni/fabric/probe_endpoint_mac.h"
#include "cni/protocol/cni_result.h"
#include "cni/state/allocation.h"
#include "netns/base/text.h"
#include "tests/support/plugin/rails_fixture.h"
#include "tests/support/plugin/vf_fields.h"
#include "tests/support/rapidcheck.h"

namespace railhead::testing {
namespace {

constexpr const char* kUid = "6a5a2b9e-0c1f-4f7e-9d56-000000000001";
constexpr const char* kOtherUid = "6a5a2b9e-0c1f-4f7e-9d56-000000000002";
constexpr const char* kEtc = "/etc/railhead/fabric.json";

// A way to write each of the restricted keys.
const std::multimap<std::string, std::string>& Writings() {
  static const auto kAll = [] {
    std::multimap<std::string, std::string> all = {
        {"vlan", R"("vlan":0)"},
        {"mac", R"("runtimeConfig":{"mac":"02:11:22:33:44:55"})"},
        {"gateway", R"("gateway":"10.100.0.7")"},
        {"rail", R"("rail":"rail1")"},
        {"conflictProbeMs", R"("conflictProbeMs":0)"},
        {"ips", R"("runtimeConfig":{"ips":["10.100.0.9"]},"ipam":{"type":"railhead-ipam"})"},
        {"ips", R"("args":{"cni":{"ips":["10.100.0.9"]}},"ipam":{"type":"railhead-ipam"})"},
        {"addresses", R"("ipam":{"type":"railhead-ipam","subnet":"10.9.0.0/24"})"},
        {"addresses", R"("ipam":{"type":"railhead-ipam","ranges":[[{"subnet":"10.9.0.0/24"}]]})"},
        {"addresses", R"("ipam":{"type":"railhead-ipam","range":"10.9.0.0/24"})"},
        {"addresses", R"("ipam":{"type":"railhead-ipam","reuseDelaySeconds":0})"},
        {"addresses", R"("ipam":{"type":"railhead-ipam","addresses":[{"address":"10.100.0.9/24"}]})"}};
    for (auto& [key, field] : VfFields()) all.emplace(std::move(key), std::move(field));
    return all;
  }();
  return kAll;
}

class PluginPermissionsTest : public RailsFixture {
 protected:
  void SetUp() override {
    RailsFixture::SetUp();
    std::filesystem::create_symlink(RAILHEAD_IPAM, Programs() + "/railhead-ipam");
    WriteFileAt(sysfs_.directory() + "/etc/railhead/node-name", "n0\n");
    WriteNode();
  }
  // The usual rails, which have addresses for this node.
  void WriteNode() {
    WriteRails({{"rail0", "pf0"}, {"rail1", "pf1"}, {"rail2", "pf2"}}, R"(,"nodeBlock":25)");
  }
  void Permit(const std::string& fields) {
    permissions_ = fields;
    WriteNode();
  }
  static std::string PodArgs(const std::string& uid = kUid) {
    return "IgnoreUnknown=1;K8S_POD_NAMESPACE=jobs;K8S_POD_NAME=job-0;K8S_POD_UID=" + uid;
  }
  [[nodiscard]] Call OfPod(const std::string& fields, const std::string& args = PodArgs()) const {
    const bool addresses = fields.find("\"ipam\"") != std::string::npos;
    return {.config = R"("ncclConfig":"off","deviceID":")" + Bdf(0) + "\"," +
                      (addresses ? "" : "\"ipam\":{},") + fields,
            .args = args};
  }
  void ExpectRefused(const Call& call, const std::string& key) {
    const auto before = World();
    const auto added = Add(call);
    ASSERT_FALSE(added) << call.config;
    EXPECT_EQ(CniCodeOf(added.error().code), kCniPermission) << Describe(added.error());
    EXPECT_NE(Describe(added.error()).find(key), std::string::npos) << Describe(added.error());
    EXPECT_NE(added.error().hint.find(kEtc), std::string::npos) << Describe(added.error());
    EXPECT_EQ(ChangedSince(before), "");
    ASSERT_TRUE(Del(call)) << "as every runtime does after a failed ADD";
    EXPECT_EQ(ChangedSince(before), "");
  }
  // Another error may refuse the call, but not a permission.
  void ExpectPermitted(const Call& call) {
    const auto added = Add(call);
    EXPECT_TRUE(added || added.error().message.find(std::string(kEtc) + ":") == std::string::npos)
        << Describe(added.error());
    EXPECT_TRUE(added || added.error().code != ErrorCode::kPermission) << call.config << "\n"
                                                                       << Describe(added.error());
    ASSERT_TRUE(Del(call));
  }
};

// The list of the header and this test's are the same one.
TEST_F(PluginPermissionsTest, EveryRestrictedKeyIsTried) {
  std::set<std::string> tried;
  for (const auto& [key, writing] : Writings()) tried.insert(key);
  EXPECT_EQ(tried, RestrictedKeys());
}

TEST_F(PluginPermissionsTest, NetworksOfPodsMayNotSayWhatReachesBeyondThePod) {
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}}});
  for (const auto& [key, writing] : Writings()) {
    SCOPED_TRACE(writing);
    Permit("");
    ExpectRefused(OfPod(writing), key);
    Permit(R"(,"allow":[")" + key + "\"]");
    ExpectPermitted(OfPod(writing));
    Permit(R"(,"allow":["*"])");
    ExpectPermitted(OfPod(writing));
    // Root's own call, and a node without a fabric: as with sriov-cni.
    Permit("");
    ExpectPermitted(OfPod(writing, ""));
    std::filesystem::remove(sysfs_.directory() + kEtc);
    ExpectPermitted(OfPod(writing));
  }
  Permit("");
  ExpectRefused(OfPod(R"("vlan":7)", "K8S_POD_NAME=job-0;K8S_POD_UID=" + std::string(kUid)), "vlan");
  const std::string ipam = R"("ipam":{"type":"railhead-ipam"})";
  ExpectRefused(OfPod(ipam, PodArgs() + ";MAC=02:11:22:33:44:55"), "mac");
  ExpectRefused(OfPod(ipam, PodArgs() + ";IP=10.100.0.9"), "CNI_ARGS");
}

// Fields that only name the device's own settings, or that take effect only within the pod.
TEST_F(PluginPermissionsTest, WhatNeedsNoPermission) {
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}}});
  for (const char* fields :
       {R"("mtu":1500)", R"("rail":"rail0")", R"("ipam":{"type":"railhead-ipam","rail":"rail0"})",
        R"("ipam":{"type":"railhead-ipam","exclude":["10.100.0.5"]})", R"("routes":[])", R"("table":7)",
        R"("promisc":true)", R"("altNames":["ib0"])", R"("fabric":"/etc/railhead/fabric.json")",
        R"("sysctl":{"net.ipv4.conf.IFNAME.arp_filter":"1","net/ipv6/conf/IFNAME/accept_ra":"0",
                     "net.ipv4.neigh.IFNAME.mcast_solicit":"9","net.core.somaxconn":"4096"})"}) {
    ExpectPermitted(OfPod(fields));
  }
}

TEST_F(PluginPermissionsTest, RulesAreForNetworksAndNamespaces) {
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}}});
  Permit(R"(},{"networks":["rail*"],"namespaces":["jobs","team-*"],"allow":["vlan"])");
  const auto in = [&](const std::string& name_space, const std::string& network) {
    Call call =
        OfPod(R"("vlan":7)", "K8S_POD_NAMESPACE=" + name_space + ";K8S_POD_NAME=p;K8S_POD_UID=" + kUid);
    call.network = network;
    return call;
  };
  ExpectPermitted(in("jobs", "rail0"));
  ExpectPermitted(in("team-a", "rail7"));
  ExpectRefused(in("default", "rail0"), "namespace default");
  ExpectRefused(in("jobs", "mine"), "network mine");
  ExpectRefused(OfPod(R"("trust":"on")"), "trust");
}

// Some sysctls below net/ apply to all namespaces at once (net.netfilter.nf_hooks_lwtunnel). ADD refuses them
// for every caller.
TEST_F(PluginPermissionsTest, SysctlsOfOneNamespaceOnly) {
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}}});
  for (const char* name :
       {"net.netfilter.nf_hooks_lwtunnel", "net.netfilter.nf_conntrack_max", "net.core.rmem_max",
        "net.ipv4.neigh.default.gc_thresh3", "net.ipv4.tcp_mem", "net.ipv4.conf.x.y.z"}) {
    const std::string writing = std::string(R"("sysctl":{")") + name + R"(":"1"})";
    Permit("");
    ExpectRefused(OfPod(writing), name);
    ExpectRefused(OfPod(writing, ""), name);
    std::string slashes = writing;
    std::replace(slashes.begin(), slashes.end(), '.', '/');
    ExpectRefused(OfPod(slashes), name);
    Permit(R"(,"sysctls":[")" + std::string(name) + "\"]");
    ExpectPermitted(OfPod(writing));
  }
}

// Of the cluster's own interface, lo, all and those that come later, in each form of a name. For IFNAME the
// call needs no rule, and the value is there.
TEST_F(PluginPermissionsTest, SysctlsOfTheNetworksOwnInterfaceOnly) {
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}}});
  const auto setting = [](const std::string& name) { return "\"sysctl\":{\"" + name + R"(":"1"})"; };
  for (const std::string start : {"net/ipv4/conf/", "net/ipv6/conf/", "net/ipv4/neigh/", "net/ipv6/neigh/"}) {
    const bool neighbors = start.ends_with("neigh/");
    const std::string end = neighbors ? "/mcast_solicit" : "/forwarding";
    const auto of = [&](const std::string& name) { return std::string(start).append(name).append(end); };
    for (const std::string name :
         {"all", "default", "lo", "eth0", "eth0.7", "net1", "ifname", "IFNAME0", "IFNAME.7"}) {
      const std::string slashes = of(name);
      std::string dots = slashes;
      std::ranges::replace(dots, '/', '.');
      const bool dotted = name.find('.') != std::string::npos;
      const std::string shown = dotted ? slashes : dots;
      SCOPED_TRACE(slashes);
      Permit("");
      ExpectRefused(OfPod(setting(slashes)), "\"sysctls\": [\"" + shown + "\"]");
      if (!dotted) ExpectRefused(OfPod(setting(dots)), shown);
      if (neighbors && name == "default") continue;  // of all namespaces
      ExpectPermitted(OfPod(setting(slashes), ""));
      Permit(R"(,"sysctls":[")" + shown + "\"]");
      ExpectPermitted(OfPod(setting(slashes)));
      ExpectPermitted(OfPod(setting(shown)));
    }
    Permit("");
    for (const std::string ifname : {"net1", "eth0.7", "lo0"}) {
      Call own = OfPod(setting(of("IFNAME")));
      own.ifname = ifname;
      const auto added = Add(own);
      ASSERT_TRUE(added) << Describe(added.error());
      EXPECT_EQ(kernel_.state().ReadSysctl(pod_, of(ifname)), "1");
      ASSERT_TRUE(Del(own));
    }
  }
}

// A fabric file decides about VLANs and pools; opening a device or a pipe is an act of its own.
TEST_F(PluginPermissionsTest, FilesAreRootsToChoose) {
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}}});
  const std::string fabric = File(kEtc);
  WriteFileAt(sysfs_.directory() + "/other.json", fabric);
  WriteFileAt(sysfs_.directory() + "/resolv.conf", "nameserver 10.0.0.1\n");
  for (const std::string fields :
       {R"("fabric":"/other.json")", R"("ipam":{"type":"railhead-ipam","fabric":"/other.json"})",
        R"("ipam":{"type":"railhead-ipam","resolvConf":"/resolv.conf"})"}) {
    Permit("");
    ExpectRefused(OfPod(fields), fields.find("/other") != std::string::npos ? "/other.json" : "/resolv.conf");
    std::filesystem::remove(sysfs_.directory() + kEtc);
    ExpectRefused(OfPod(fields), "fabric");
    Permit(R"(,"fabrics":["/other.json"],"resolvConf":["/resolv.conf"])");
    ExpectPermitted(OfPod(fields));
  }
}

// The program would run as root with the author's input.
TEST_F(PluginPermissionsTest, IpamPluginsAreRootsToChoose) {
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}}});
  const std::string fields =
      R"("ipam":{"type":"host-local","address":"10.100.0.7/24","dataDir":"/pods/volume"})";
  std::filesystem::create_symlink(TEST_IPAM, Programs() + "/host-local");
  (void)IpamLog();
  ExpectRefused(OfPod(fields), "host-local");
  EXPECT_EQ(IpamLog(), "") << "not for DEL either";
  Permit(R"(},{"ipam":["host-local"])");
  const auto added = Add(OfPod(fields));
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_NE(IpamLog(), "");
  EXPECT_TRUE(Del(OfPod(fields)));
}

// At random kubelet gives each VF and slot to one pod, the other pod, or neither. The network's author then
// names any of them.
TEST_F(PluginPermissionsTest, APodGetsWhatKubeletGaveToIt) {
  EXPECT_TRUE(rc::check([&] {
    std::vector<std::string> ids = {"slot-a", "slot-b", "slot-c"};
    for (const auto& vfs : vfs_) ids.insert(ids.end(), vfs.begin(), vfs.end());
    std::vector<CheckpointEntry> all = {{kUid, "main", kDefaultResource, {}},
                                        {kOtherUid, "main", kDefaultResource, {}}};
    for (const std::string& id : ids) {
      const int whose = *rc::gen::inRange(0, 3);
      if (whose < 2) all[static_cast<std::size_t>(whose)].ids.push_back(id);
    }
    WriteCheckpoint(all);
    const auto asked = *rc::gen::unique<std::vector<std::string>>(*rc::gen::inRange<std::size_t>(1, 4),
                                                                  rc::gen::elementOf(ids));
    const bool mine = std::all_of(asked.begin(), asked.end(),
                                  [&](const std::string& id) { return Contains(all[0].ids, id); });
    Call call{
        .network = "rails", .config = R"("ipam":{},"ncclConfig":"off",)" + Devices(asked), .args = PodArgs()};
    if (asked.size() == 1 && *rc::gen::arbitrary<bool>()) {
      const char* ways[] = {"\"deviceID\":\"", "\"pciBusID\":\"", "\"runtimeConfig\":{\"deviceID\":\""};
      const int way = *rc::gen::inRange(0, 3);
      call.config = R"("ipam":{},"ncclConfig":"off",)" + std::string(ways[way]) + asked.front() + "\"" +
                    (way == 2 ? "}" : "");
    }
    const auto added = Add(call);
    const bool refused = !added && added.error().code == ErrorCode::kPermission;
    RC_ASSERT(refused != mine);
    RC_ASSERT(static_cast<bool>(Del(call)));
  }));
}

// Another allocator gives devices out, or the runtime does not pass the UID.
TEST_F(PluginPermissionsTest, DevicesOfAnotherAllocator) {
  WriteCheckpoint({{kOtherUid, "main", kDefaultResource, {Bdf(0)}}});
  const Call with_uid = OfPod(R"("mtu":1500)");
  const Call without_uid = OfPod(R"("mtu":1500)", "K8S_POD_NAMESPACE=jobs;K8S_POD_NAME=job-0");
  ExpectRefused(with_uid, "kubelet did not give");
  ExpectRefused(without_uid, "K8S_POD_UID");
  Permit(R"(,"devices":"any")");
  ExpectPermitted(with_uid);
  ExpectPermitted(without_uid);
  Permit("");
  ExpectPermitted(OfPod(R"("mtu":1500)", ""));
}

// A drop-in for sriov-cni has no policy, and its networks state everything they need.
TEST_F(PluginPermissionsTest, WithoutAFabricKeysAreFreeAndDevicesStayThePods) {
  std::filesystem::remove(sysfs_.directory() + kEtc);
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}}});
  const std::string says = R"("vlan":300,"trust":"on","ipam":{})";
  ExpectPermitted(OfPod(says));
  ExpectPermitted(OfPod(says, "K8S_POD_NAMESPACE=jobs;K8S_POD_NAME=job-0"));
  const auto before = World();
  const auto stolen = Add(OfPod(says, PodArgs(kOtherUid)));
  ASSERT_FALSE(stolen);
  EXPECT_EQ(stolen.error().code, ErrorCode::kPermission) << Describe(stolen.error());
  EXPECT_EQ(ChangedSince(before), "");
}

// A PF is a whole rail of the node, so kubelet's allocation counts whatever the policy says.
TEST_F(PluginPermissionsTest, APfIsForWhomKubeletGaveIt) {
  const std::string pf = "0000:e3:00.0";
  kernel_.AddPf({.address = pf, .netdev = "pf9"}, {});
  const Call call{.config = R"("ncclConfig":"off","ipam":{},"deviceID":")" + pf + "\"", .args = PodArgs()};
  WriteCheckpoint({{kOtherUid, "main", kDefaultResource, {pf}}});
  for (const char* fields : {"", R"(,"devices":"any")"}) {
    Permit(fields);
    const auto added = Add(call);
    ASSERT_FALSE(added);
    EXPECT_EQ(CniCodeOf(added.error().code), kCniPermission) << Describe(added.error());
  }
  WriteCheckpoint({{kUid, "main", kDefaultResource, {pf}}});
  const auto added = Add(call);
  EXPECT_TRUE(added) << Describe(added.error());
}

// For every caller, and whatever root permits: a pod with such a MAC would receive another's frames.
TEST_F(PluginPermissionsTest, MacsOfOthersAreNobodysToTake) {
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}}});
  Permit(R"(,"allow":["mac"])");
  auto& state = kernel_.state();
  const auto of_vf = MacOf(*state.Function(Bdf(1))->state);
  const std::vector<std::pair<std::string, std::string>> taken = {
      {"a router's protocol", "00:00:5e:00:01:07"},
      {"the PF", state.OfFunction("0000:43:00.0")->link.mac.ToString()},
      {"the PF of another rail", state.OfFunction("0000:83:00.0")->link.mac.ToString()},
      {"another VF", of_vf.IsZero() ? state.OfFunction(Bdf(1))->link.mac.ToString() : of_vf.ToString()},
      {"a probing station", ProbeEndpointMac("n0", "rail0").ToString()}};
  for (const auto& [whose, mac] : taken) {
    for (const std::string& args : {PodArgs(), std::string()}) {
      SCOPED_TRACE(whose);
      const auto added = Add(OfPod("\"mac\":\"" + mac + "\"", args));
      ASSERT_FALSE(added);
      EXPECT_EQ(added.error().code, ErrorCode::kConflict) << Describe(added.error());
      EXPECT_NE(added.error().message.find(mac), std::string::npos) << Describe(added.error());
    }
  }
  const Call own = OfPod(R"("mac":"02:11:22:33:44:55")");
  const auto added = Add(own);
  EXPECT_TRUE(added) << Describe(added.error());
  EXPECT_TRUE(Del(own));
}

}  // namespace
}  // namespace railhead::testing
