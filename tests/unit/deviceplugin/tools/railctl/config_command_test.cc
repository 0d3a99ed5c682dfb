// railctl config, as a process on a fake sysfs: exit status and what goes where.
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class ConfigCommandTest : public TwoRails {
 protected:
  struct Ended {
    int status = -1;
    std::string out;
    std::string err;
  };

  Ended Railctl(const std::string& arguments) {
    const std::string errors = sysfs_.directory() + "/stderr";
    const std::string command =
        "RAILHEAD_ROOT='" + sysfs_.directory() + "' '" RAILCTL "' " + arguments + " 2>'" + errors + "'";
    Ended ended;
    FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) {
      ADD_FAILURE() << "cannot run " << command;
      return ended;
    }
    std::array<char, 4096> buffer{};
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
      ended.out.append(buffer.data(), got);
    }
    const int status = ::pclose(pipe);
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ended.err = ReadFile(errors).value().value_or("");
    return ended;
  }
};

constexpr const char* kGood =
    R"({"resourceList": [{"resourceName": "net", "selectors": {"pfNames": ["pf0#0"], "isRdma": true}}]})";

TEST_F(ConfigCommandTest, CheckLooksAtTheRulesOfHealthToo) {
  sysfs_.Write("/fabric.json", TwoRailFabric(R"(, "health": {"intervalSeconds": 0})"));
  const Ended checked = Railctl("config check /fabric.json");
  EXPECT_EQ(checked.status, 3);
  EXPECT_NE(checked.err.find("/health/intervalSeconds"), std::string::npos) << checked.err;
}

// A copy on an operator's machine is anybody's. The node's own file is refused as ADD refuses it.
TEST_F(ConfigCommandTest, CheckTakesACopyThatOthersCanChange) {
  const std::vector<std::pair<std::string, int>> files = {{"/copy/fabric.json", 0},
                                                          {"/etc/railhead/fabric.json", 3}};
  for (const auto& [file, status] : files) {
    sysfs_.Write(file, TwoRailFabric());
    ASSERT_EQ(::chmod((sysfs_.directory() + file).c_str(), 0666), 0);
    const Ended checked = Railctl("config check " + file);
    EXPECT_EQ(checked.status, status) << file << ": " << checked.err;
    EXPECT_EQ(checked.err.find("chmod go-w ") != std::string::npos, status != 0) << checked.err;
  }
}

std::string WithGroups(const std::string& groups) {
  return TwoRailFabric(R"(, "nodeGroups": [)" + groups + "]");
}

constexpr const char* kTwoGroups =
    R"({"name": "su1", "nodes": "gpu-0[1-2]", "indices": "0-1",
        "rails": {"rail0": {"subnet": "10.1.0.0/24", "nodeBlock": 28}}},
       {"name": "su2", "nodes": "gpu-0[3-4]", "indices": "2-3",
        "rails": {"rail0": {"subnet": "10.2.0.0/24", "nodeBlock": 28}, "rail1": false}, "pools": [{"resource": "x.io/r", "rails": ["rail0"]}]})";

TEST_F(ConfigCommandTest, CheckSaysWhatANodeGetsFromItsGroups) {
  sysfs_.Write("/fabric.json", WithGroups(kTwoGroups));
  const Ended text = Railctl("config check /fabric.json --node gpu-03");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("node gpu-03: groups su2"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("/rails/rail1"), std::string::npos) << text.out;
  const Ended json = Railctl("config check /fabric.json --node gpu-01 -o json");
  EXPECT_EQ(json.status, 0);
  EXPECT_NE(json.out.find("\"su1\""), std::string::npos) << json.out;
  EXPECT_NE(json.out.find("/rails/rail0/subnet"), std::string::npos) << json.out;
}

TEST_F(ConfigCommandTest, CheckFindsWhatOneOfAllNodesLacks) {
  sysfs_.Write("/fabric.json", WithGroups(kTwoGroups));
  sysfs_.Write("/names", "gpu-01\ngpu-03\n");
  const Ended good = Railctl("config check /fabric.json --all-nodes /names");
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_NE(good.out.find("group su1: 1 node\ngroup su2: 1 node\n"), std::string::npos) << good.out;
  sysfs_.Write("/nodes.json", R"({"kind": "List", "items": [
      {"metadata": {"name": "gpu-01", "labels": {"name": "no"}}, "spec": {"name": "no", "x": ")" +
                                  std::string(6'000'000, 'x') + R"("}}, {"metadata": {"name": "cpu-9"}}]})");
  sysfs_.Write("/bare.json",
               R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0"}, {"name": "rail1", "pf": "pf1"}],
      "nodeGroups": [)" +
                   std::string(kTwoGroups) + "]}");
  const Ended lacks = Railctl("config check /bare.json --all-nodes /nodes.json");
  EXPECT_EQ(lacks.status, 3) << lacks.out;
  EXPECT_NE(lacks.err.find("rail 'rail0' has no subnet; node 'cpu-9' is in no group"), std::string::npos)
      << lacks.err;
  sysfs_.Write("/names", "gpu-01\n");
  const Ended unmatched = Railctl("config check /fabric.json --all-nodes /names");
  EXPECT_EQ(unmatched.status, 0);
  EXPECT_NE(unmatched.err.find("/nodeGroups/1/nodes/0: no node matches 'gpu-0[3-4]' of group 'su2'"),
            std::string::npos)
      << unmatched.err;
}

TEST_F(ConfigCommandTest, AWarningOfAFabricWithoutGroupsIsGivenOnce) {
  for (const char* node : {"", R"(, "node": {"name": "a", "groups": ["su1"]})"}) {
    sysfs_.Write("/fabric.json",
                 R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0", "subnet": "10.0.0.0/24"}],
        "nodes": {"a": 0, "b": 1})" +
                     std::string(node) + "}");
    const Ended checked = Railctl("config check /fabric.json");
    EXPECT_EQ(checked.status, 0) << checked.err;
    const std::size_t first = checked.err.find("nothing divides its subnet");
    ASSERT_NE(first, std::string::npos) << checked.err;
    EXPECT_EQ(checked.err.find("nothing divides its subnet", first + 1), std::string::npos) << checked.err;
  }
}

// Without a node's name, too: each group over the base is checked, and each listed node.
TEST_F(ConfigCommandTest, CheckNamesTheGroupAndTheNodeOfAFault) {
  const auto fault = [&](const std::string& groups) {
    sysfs_.Write("/fabric.json", WithGroups(groups));
    const Ended checked = Railctl("config check /fabric.json");
    EXPECT_EQ(checked.status, 3) << groups;
    return checked.err;
  };
  EXPECT_NE(fault(R"({"name": "a", "nodes": "x", "rails": {"rail0": {"mtuu": 1}}})")
                .find("group 'a' over the base: /rails/0/mtuu"),
            std::string::npos);
  EXPECT_NE(fault(R"({"name": "a", "nodes": "x", "health": {"intervalSeconds": 0}})")
                .find("group 'a' over the base: /health/intervalSeconds"),
            std::string::npos);
  const std::string pool = fault(
      R"({"name": "a", "nodes": "x", "rails": {"rail1": false}, "pools": [{"resource": "x.io/r", "rails": ["rail1"]}]})");
  EXPECT_NE(pool.find("group 'a' over the base: /pools/0/rails: fabric.json has no rail 'rail1'"),
            std::string::npos)
      << pool;
  EXPECT_NE(pool.find("a group that takes a rail away gives `pools` without it"), std::string::npos) << pool;
  EXPECT_NE(
      fault(R"({"name": "a", "nodes": "x", "rails": {"rail0": {"gateway": "10.9.0.1"}}})").find("group 'a'"),
      std::string::npos);
}

// railheadd would not start with any of them.
TEST_F(ConfigCommandTest, CheckReadsWhereIndicesComeFromToo) {
  const auto check = [&](const std::string& addresses) {
    sysfs_.Write(
        "/fabric.json",
        R"({"version": 1, "rails": [{"name": "r", "pf": "pf0", "subnet": "10.0.0.0/16", "nodeBlock": 26}],
                     "addresses": )" +
            addresses + "}");
    return Railctl("config check /fabric.json");
  };
  EXPECT_EQ(check(R"({"index": {"from": "kubernetes", "kubernetes": {"timeoutSeconds": 9}}})").status, 0);
  const Ended unknown = check(R"({"index": {"from": "kubernetes", "renewSeconds": 64}})");
  EXPECT_EQ(unknown.status, 3);
  EXPECT_NE(unknown.err.find("/addresses/index/renewSeconds: unknown field"), std::string::npos)
      << unknown.err;
  const Ended client = check(R"({"index": {"kubernetes": {"kubeconfig": "x"}}})");
  EXPECT_EQ(client.status, 3);
  EXPECT_NE(client.err.find("/addresses/index/kubernetes/kubeconfig"), std::string::npos) << client.err;
  const Ended former = check(R"({"store": {"type": "etcd", "etcd": {"endpoints": ["http://etcd:2379"]}}})");
  EXPECT_EQ(former.status, 3);
  EXPECT_NE(former.err.find("/addresses/store"), std::string::npos) << former.err;
  EXPECT_NE(former.err.find("nodeBlock"), std::string::npos) << former.err;
}

TEST_F(ConfigCommandTest, CheckPrintsWhatTheResourcesGet) {
  sysfs_.Write("/config.json", kGood);
  const Ended text = Railctl("config check /config.json --resource-prefix x.io");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.out.rfind("ok\nx.io/net: 1 device\n  " + vfs0_[0], 0), 0U) << text.out;
  const Ended json = Railctl("config check /config.json -o json");
  EXPECT_EQ(json.status, 0) << json.err;
  const Json plan = Json::parse(json.out);
  EXPECT_EQ(plan["ok"], true);
  EXPECT_EQ(plan["plan"]["resources"][0]["devices"][0]["id"], vfs0_[0]);
  sysfs_.Write("/fabric.json", TwoRailFabric());
  const Ended fabric = Railctl("config check /fabric.json");
  EXPECT_EQ(fabric.status, 0) << fabric.err;
  EXPECT_NE(fabric.out.find("railhead.io/roce: 8 devices"), std::string::npos) << fabric.out;
}

TEST_F(ConfigCommandTest, CheckPrintsHowManyNodesARailCarries) {
  sysfs_.Write("/fabric.json", R"({"version": 1, "nodes": {"n": 0}, "rails": [
      {"name": "r", "pf": "pf0", "subnet": "10.0.0.0/24", "nodeBlock": 28, "exclude": ["10.0.0.16/28"]},
      {"name": "bare", "pf": "pf1"}]})");
  const Ended text = Railctl("config check /fabric.json");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("rail r: 15 nodes with 15 to 16 addresses each; blocks without one: 1\n"),
            std::string::npos)
      << text.out;
  EXPECT_EQ(text.out.find("rail bare"), std::string::npos) << text.out;
  const Ended json = Railctl("config check /fabric.json -o json");
  EXPECT_EQ(json.status, 0) << json.err;
  EXPECT_EQ(Json::parse(json.out)["capacities"], Json::parse(R"([{"rail": "r", "blocks": 16, "nodes": 15,
      "leastAddresses": 15, "mostAddresses": 16}])"))
      << json.out;
}

// The SR-IOV operator writes a file for each node.
TEST_F(ConfigCommandTest, CheckTakesANodeWithoutAPolicy) {
  sysfs_.Write("/config.json", R"({"resourceList":null})");
  const Ended checked = Railctl("config check /config.json");
  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_TRUE(checked.out.starts_with("ok\n")) << checked.out;
  EXPECT_EQ(checked.out.find("intel.com/"), std::string::npos) << checked.out;
}

TEST_F(ConfigCommandTest, CheckWarnsOfIndicesThatNoNodeHas) {
  const auto check = [&](const std::string& more) {
    sysfs_.Write(
        "/fabric.json",
        R"({"version": 1, "rails": [{"name": "r", "pf": "pf0", "subnet": "10.0.0.0/16", "nodeBlock": 26}])" +
            more + "}");
    return Railctl("config check /fabric.json");
  };
  const Ended neither = check("");
  EXPECT_EQ(neither.status, 0) << neither.err;
  EXPECT_NE(neither.err.find("'nodes' and addresses.index.from kubernetes are missing"), std::string::npos)
      << neither.err;
  for (const char* more : {R"(, "nodes": {"n": 0})", R"(, "addresses": {"index": {"from": "kubernetes"}})"}) {
    const Ended fine = check(more);
    EXPECT_EQ(fine.status, 0) << fine.err;
    EXPECT_EQ(fine.err.find("indices"), std::string::npos) << fine.err;
  }
}

// Each of these files is valid, since networks can bring what it lacks.
struct Warned {
  std::string name;
  std::string fabric;    // behind its version
  std::string warnings;  // "POINTER: ... words", all of them in this order, one a line; "": none
};

const std::vector<Warned>& WarnedFabrics() {
  static const std::string rail = R"("rails": [{"name": "r", "pf": "pf0", "subnet": "10.0.0.0/16")";
  static const std::vector<Warned> fabrics = {
      {"NothingDivides", R"("nodes": {"n": 0}, )" + rail + "}]",
       "/rails/0/subnet: no node gives addresses of r: nothing divides its subnet"},
      {"NothingDividesTwo",
       R"("rails": [{"name": "a", "pf": "pf0"}, {"name": "b", "pf": "pf1", "subnet": "10.0.0.0/16"},
                    {"name": "c", "pf": 0, "subnet": "10.1.0.0/16"}])",
       "/rails/1/subnet: no node gives addresses of b, c: "},
      {"ClaimedIndicesDivideNothing", R"("addresses": {"index": {"from": "kubernetes"}}, )" + rail + "}]",
       "/rails/0/subnet: no node gives addresses of r: nothing divides its subnet"},
      {"BeyondTheBlocks",
       R"("nodes": {"a": 1023, "n/1": 1024, "o": 9999}, )" + rail + R"(, "nodeBlock": 26}])",
       "/nodes/n~11: pods there get no address of r: index 1024 is beyond the 1024 blocks of 10.0.0.0/16; "
       "nor do "
       "pods of 1 other nodes"},
      {"NotInTheRanges",
       R"("nodes": {"a": 0, "b": 1}, )" + rail +
           R"(, "nodeRanges": {"0": "10.0.0.0/24", "c": "10.0.1.0/24"}}])",
       "/nodes/b: pods there get no address of r: nodeRanges has neither 'b' nor its index 1"},
      {"ExcludedBlock",
       R"("nodes": {"a": 0, "b": 1}, )" + rail + R"(, "nodeBlock": 24, "exclude": ["10.0.1.0/24"]}])",
       "/nodes/b: pods there get no address of r: subnet 10.0.0.0/16 has no address left"},
      {"NetworksPerHost",
       R"("nodes": {"a": 0}, "rails": [
          {"name": "a", "pf": "pf0", "subnet": "10.0.0.0/31", "nodeRanges": {"0": "10.0.0.0"}},
          {"name": "b", "pf": "pf1", "subnet": "10.0.1.0/32", "nodeRanges": {"0": "10.0.1.0"}},
          {"name": "c", "pf": 2, "subnet": "fd00::/127", "nodeRanges": {"0": "fd00::"}},
          {"name": "d", "pf": 3, "subnet": "10.0.2.0/24", "nodeBlock": 31},
          {"name": "e", "pf": 4, "subnet": "fd01::/64", "nodeBlock": 127},
          {"name": "f", "pf": 5, "subnet": "10.0.3.0/30", "nodeBlock": 30},
          {"name": "g", "pf": 6, "subnet": "10.0.4.0/24", "nodeBlock": 32, "exclude": []}])",
       "/nodes/a: pods there get no address of g: \n"
       "/rails/0/subnet: 10.0.0.0/31 is a network of one host\n"
       "/rails/1/subnet: 10.0.1.0/32 is a network of one host\n"
       "/rails/2/subnet: fd00::/127 is a network of one host\n"
       "/rails/3/nodeBlock: 31 gives each node two addresses of 10.0.2.0/24\n"
       "/rails/4/nodeBlock: 127 gives each node two addresses of fd01::/64"},
      {"RoutedRails",
       R"("nodes": {"a": 0}, "provision": {"vfs": 8, "rails": {"b": {"vfs": 4}, "d": {"vfs": 1}}}, "rails": [
          {"name": "a", "pf": "pf0", "subnet": "10.0.0.0/24", "nodeSubnet": 29, "gateway": "last"},
          {"name": "b", "pf": "pf1", "subnet": "10.1.0.0/24", "nodeSubnet": 29, "gateway": "first"},
          {"name": "c", "pf": 2, "subnet": "10.2.0.0/24", "nodeBlock": 30},
          {"name": "d", "pf": 3, "subnet": "10.3.0.0/24", "nodeSubnet": 31},
          {"name": "e", "pf": 4, "subnet": "fd01::/56", "nodeSubnet": 64, "gateway": "first"},
          {"name": "f", "pf": 5, "subnet": "10.5.0.0/24", "nodeSubnet": 28, "gateway": "10.5.0.17"}])",
       "/nodes/a: pods there get no address of f: its gateway 10.5.0.17 is outside the node's network\n"
       "/rails/3/gateway: without a gateway, no node of d reaches another one\n"
       "/rails/0/nodeSubnet: 29 gives a node 5 addresses for pods of a, and provision makes 8 VFs there\n"
       "/rails/2/nodeBlock: 30 gives a node 3 addresses for pods of c, and provision makes 8 VFs there"},
      {"ManyRoutes", R"("nodes": {"a": 0}, "rails": [
          {"name": "a", "pf": "pf0", "subnet": "10.0.0.0/24", "nodeBlock": 28, "gateway": "last", "fabricSubnets": ["10.0.0.0/24", "10.0.2.0/24", "10.0.4.0/24", "10.0.6.0/24", "10.0.8.0/24", "10.0.10.0/24", "10.0.12.0/24", "10.0.14.0/24", "10.0.16.0/24", "10.0.18.0/24", "10.0.20.0/24", "10.0.22.0/24", "10.0.24.0/24", "10.0.26.0/24", "10.0.28.0/24", "10.0.30.0/24", "10.0.32.0/24", "10.0.34.0/24"]}])",
       "/rails/0/routes: pods of a get 17 routes, to the subnets of all nodes"},
      {"FullBlocks", R"("nodes": {"a": 0, "b": 255}, )" + rail + R"(, "nodeBlock": 24}])", ""},
      {"NoIndices", rail + R"(, "nodeBlock": 26}])", "/nodes: rails give addresses by the nodes' indices"},
      {"LongName", R"("rails": [{"name": "rail-zero-with-a-long-name", "pf": "pf0"}])",
       "/rails/0/name: interfaces cannot be named after the rail: 'rail-zero-with-a-long-name' is not an"},
      {"Fourteen",
       R"("rails": [{"name": "fourteen-chars", "pf": "pf0"}, {"name": "thirteen-char", "pf": "pf1"}])",
       "/rails/0/name: interfaces cannot be named after the rail: 'fourteen-chars-1', of a second device"},
      {"Loopback", R"("rails": [{"name": "lo", "pf": "pf0"}, {"name": "eth0", "pf": "pf1"}])",
       "/rails/0/name: interfaces cannot be named after the rail: each pod has an interface lo\n"
       "/rails/1/name: interfaces cannot be named after the rail: pods have an interface eth0"},
      {"Colliding",
       R"("rails": [{"name": "a", "pf": "pf0"}, {"name": "a-2", "pf": "pf1"}, {"name": "nic1", "pf": 2},
                    {"name": "b-2", "pf": 3}, {"name": "nic", "pf": 4}])",
       "/rails/1/name: interfaces cannot be named after the rail: a further device of rail a is also\n"
       "/rails/2/name: interfaces cannot be named after the rail: a NIC without a rail"},
      {"NoName", R"("rails": [{"name": "a:b", "pf": "pf0"}, {"name": "50%", "pf": "pf1"}])",
       "/rails/0/name: interfaces cannot be named after the rail: 'a:b' is not\n"
       "/rails/1/name: interfaces cannot be named after the rail: '50%' is not"},
      {"VariablesOfOtherPrograms",
       R"("rails": [{"name": "r", "pf": "pf0"}], "ncclConfig": {"env": {"NCCL_DEBUG": "INFO", "RCCL_X": "1",
          "OFI_NCCL_PROTOCOL": "RDMA", "MC_GID_INDEX": "3", "UCX_TLS": "rc", "NVSHMEM_DEBUG": "INFO",
          "NCCLX": "1"}})",
       "/ncclConfig/env/MC_GID_INDEX: programs besides NCCL do not read nccl.conf\n"
       "/ncclConfig/env/NCCLX: programs besides NCCL do not read nccl.conf\n"
       "/ncclConfig/env/NVSHMEM_DEBUG: programs besides NCCL do not read nccl.conf\n"
       "/ncclConfig/env/UCX_TLS: programs besides NCCL do not read nccl.conf"},
  };
  return fabrics;
}

TEST_F(ConfigCommandTest, CheckWarnsOfRoutesThatTakeTheClustersTraffic) {
  sysfs_.Write("/etc/cni/net.d/10-k.conflist", R"({"name": "k", "plugins": [
    {"type": "bridge", "ipam": {"type": "host-local", "subnet": "10.244.1.0/24"}}]})");
  const auto warned = [&](const std::string& route) {
    sysfs_.Write("/fabric.json", R"({"version": 1, "nodes": {"n": 0}, "rails": [{"name": "r", "pf": "pf0",
      "subnet": "10.100.0.0/16", "gateway": "10.100.0.1", "nodeBlock": 24, "routes": [")" +
                                     route + R"("]}]})");
    const Ended checked = Railctl("config check /fabric.json");
    EXPECT_EQ(checked.status, 0) << checked.err;
    return checked.err.find("warning: /fabric.json: /rails/0/routes/0: " + route +
                            " takes the pods' traffic to 10.244.1.0/24") != std::string::npos;
  };
  EXPECT_TRUE(warned("10.0.0.0/8"));
  EXPECT_FALSE(warned("10.100.0.0/14"));
}

TEST_F(ConfigCommandTest, CheckWarnsOfWhatAddRefuses) {
  for (const Warned& one : WarnedFabrics()) {
    sysfs_.Write("/fabric.json", R"({"version": 1, )" + one.fabric + "}");
    const Ended checked = Railctl("config check /fabric.json");
    EXPECT_EQ(checked.status, 0) << one.name << ": " << checked.err;
    const Json json = Json::parse(Railctl("config check /fabric.json -o json").out, nullptr, false);
    std::vector<std::string> wanted =
        one.warnings.empty() ? std::vector<std::string>{} : Split(one.warnings, '\n');
    std::vector<std::string> found;
    for (const Json& warning : json["plan"].value("warnings", Json::array())) {
      const std::string message = warning;
      if (message.starts_with("/fabric.json: /")) found.push_back(message.substr(14));
    }
    ASSERT_EQ(found.size(), wanted.size()) << one.name << ": " << json;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(found[i].starts_with(wanted[i])) << one.name << ": " << found[i];
      EXPECT_NE(checked.err.find("warning: /fabric.json: " + found[i] + "; "), std::string::npos)
          << one.name << ": " << checked.err;
    }
  }
}

// The command reports all errors of a file at once.
TEST_F(ConfigCommandTest, CheckSaysAllThatIsWrong) {
  sysfs_.Write("/config.json", R"({"resourceList": [
      {"resourceName": "a", "selectors": {"pfName": ["x"], "vendors": ["15b"]}},
      {"resourceName": "", "deviceType": "nic", "selectors": {}},
      {"resourceName": "c", "selectors": {"isRdma": "yes"}}], "more": 1})");
  const Ended text = Railctl("config check /config.json");
  EXPECT_EQ(text.status, 3);
  const Json json = Json::parse(Railctl("config check /config.json -o json").out);
  EXPECT_EQ(json["error"], json["errors"][0]);
  std::vector<std::string> places;
  for (const Json& error : json["errors"]) {
    const std::string message = error["message"].get<std::string>();
    EXPECT_NE(text.err.find(message), std::string::npos) << message;
    const auto begin = message.find(": ") + 2;
    places.push_back(message.substr(begin, message.find(": ", begin) - begin));
  }
  EXPECT_EQ(places,
            (std::vector<std::string>{"/resourceList/0/selectors/vendors", "/resourceList/0/selectors/pfName",
                                      "/resourceList/1/resourceName", "/resourceList/1/deviceType",
                                      "/resourceList/2/selectors/isRdma", "/more"}))
      << text.err;

  sysfs_.Write("/fabric.json", R"({"version": 1, "rails": [{"name": "r", "pf": "pf0", "vlan": 9999}],
      "pools": [{"resource": "a.io/b", "rails": ["r"], "x": 1}], "health": {"intervalSeconds": 0, "y": 1}})");
  const Ended fabric = Railctl("config check /fabric.json");
  EXPECT_EQ(fabric.status, 3);
  for (const char* where : {"/rails/0/vlan", "/pools/0/x", "/health/intervalSeconds", "/health/y"})
    EXPECT_NE(fabric.err.find(where), std::string::npos) << where << " in\n" << fabric.err;
  sysfs_.Write("/fabric.json", TwoRailFabric(R"(, "health": {"y": 1}, "provision": {"vfs": -1, "z": 1})"));
  const Ended parts = Railctl("config check /fabric.json");
  for (const char* where : {"/health/y", "/provision/vfs", "/provision/z"})
    EXPECT_NE(parts.err.find(where), std::string::npos) << where << " in\n" << parts.err;
}

TEST_F(ConfigCommandTest, CheckSaysWhereItIsWrongAndEndsWith3) {
  sysfs_.Write("/config.json",
               R"({"resourceList": [{"resourceName": "net", "selectors": {"pfName": ["x"]}}]})");
  const Ended text = Railctl("config check /config.json");
  EXPECT_EQ(text.status, 3);
  EXPECT_EQ(text.out, "");
  EXPECT_NE(text.err.find("/resourceList/0/selectors/pfName"), std::string::npos) << text.err;
  EXPECT_NE(text.err.find("pfNames"), std::string::npos) << text.err;
  const Ended json = Railctl("config check /config.json -o json");
  EXPECT_EQ(json.status, 3);
  const Json error = Json::parse(json.out);
  EXPECT_EQ(error["ok"], false);
  EXPECT_NE(error["error"]["message"].get<std::string>().find("/resourceList/0/selectors/pfName"),
            std::string::npos);
  sysfs_.Write("/bytes.json", "{\"\xff\": 1}");
  EXPECT_EQ(Railctl("config check /bytes.json -o json").status, 3);
  EXPECT_EQ(Railctl("config check /nowhere.json").status, 3);
  EXPECT_EQ(Railctl("config check").status, 2);
  EXPECT_EQ(Railctl("config").status, 2);
}

}  // namespace
}  // namespace railhead::testing
