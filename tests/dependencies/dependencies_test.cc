// All sources obey the direction of dependencies, and the check finds a planted violation.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "tests/dependencies/include_rules.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

TEST(DependenciesTest, AllSourcesKeepTheDirection) {
  const IncludeCheck check = CheckIncludes(SOURCE_DIR);
  EXPECT_GT(check.files, 100) << "the sources were not found";
  EXPECT_GT(check.includes, 500);
  for (const auto& violation : check.violations) ADD_FAILURE() << violation;
}

// Each list is one line of the order: a part may include earlier parts, never later ones.
const std::vector<std::vector<std::string>>& Chains() {
  static const std::vector<std::vector<std::string>> chains = {
      {"netns/base", "netns/json", "cni/protocol", "cni/fabric", "cni/state", "cni/nccl", "cni/attachment",
       "cni/plugin"},
      {"netns/base", "netns/ns", "netns/nl", "netns", "cni/state"},
      {"netns/base", "netns/gid", "netns/verbs", "cni/state"},
      {"netns/base", "netns/ns", "netns/packet", "netns", "cni/state"},
      {"netns/base", "netns/sys", "netns", "cni/state"},
      {"netns/json", "ipam/store", "deviceplugin/services/node_index"},
      {"cni/fabric", "ipam/plugin", "deviceplugin/tools/migrate", "tests"},
      {"ipam/store", "ipam/plugin", "tests"},
      {"netns", "deviceplugin/support/http", "deviceplugin/support/kubernetes",
       "deviceplugin/services/node_status", "deviceplugin/daemon", "tests"},
      {"cni/nccl", "deviceplugin/node/inventory", "deviceplugin/node/resources",
       "deviceplugin/services/kubelet", "deviceplugin/services/late_binding", "deviceplugin/daemon", "bench"},
      {"deviceplugin/support/metrics", "deviceplugin/node/topology", "deviceplugin/services/lldp",
       "deviceplugin/tools/doctor", "tests"},
      {"deviceplugin/services/health", "deviceplugin/services/discovery", "deviceplugin/daemon"},
  };
  return chains;
}

TEST(DependenciesTest, APartIncludesOnlyWhatIsBeforeItInItsChain) {
  for (const auto& chain : Chains()) {
    for (std::size_t low = 0; low < chain.size(); ++low) {
      for (std::size_t high = low + 1; high < chain.size(); ++high) {
        EXPECT_NE(IncludeViolation(chain[low] + "/a.cc", "#include \"" + chain[high] + "/b.h\""),
                  std::nullopt)
            << chain[low] << " includes " << chain[high];
        if (chain[low] == "netns/json" || chain[high] == "bench") continue;
        if (high != low + 1) continue;
        EXPECT_EQ(IncludeViolation(chain[high] + "/a.cc", "#include \"" + chain[low] + "/b.h\""),
                  std::nullopt)
            << chain[high] << " includes " << chain[low];
      }
    }
  }
}

TEST(DependenciesTest, TheDaemonTheToolsAndTheServicesStayApart) {
  const std::vector<std::pair<std::string, std::string>> planted = {
      {"deviceplugin/daemon", "deviceplugin/tools/doctor"},
      {"deviceplugin/tools/railctl", "deviceplugin/daemon"},
      {"deviceplugin/services/lldp", "deviceplugin/services/health"},
      {"deviceplugin/services/health", "deviceplugin/services/kubelet"},
      {"deviceplugin/services/health", "deviceplugin/daemon"},
      {"deviceplugin/services/reconcile", "deviceplugin/tools/railctl"},
      {"deviceplugin/support/log", "deviceplugin/support/metrics"},
      {"deviceplugin/support/metrics", "cni/state"},
      {"deviceplugin/support/plugin_registration", "deviceplugin/services/kubelet"},
      {"deviceplugin/services/kubelet", "cni/plugin"},
      {"deviceplugin/daemon", "ipam/plugin"},
  };
  for (const auto& [file, included] : planted) {
    EXPECT_NE(IncludeViolation(file + "/a.cc", "#include \"" + included + "/b.h\""), std::nullopt)
        << file << " includes " << included;
  }
}

// Prints the groups and their includes, for readers who want to see the structure.
TEST(DependenciesTest, GroupsAndArrows) {
  const IncludeCheck check = CheckIncludes(SOURCE_DIR);
  std::set<std::string> groups{"manifests"};
  for (const auto& [arrow, count] : check.arrows) {
    groups.insert(arrow.first);
    groups.insert(arrow.second);
    std::cout << arrow.first << " -> " << arrow.second << ": " << count << " includes\n";
    EXPECT_EQ(check.arrows.count({arrow.second, arrow.first}), 0U) << "a circle";
  }
  std::cout << groups.size() << " groups, " << check.arrows.size() << " arrows\n";
  for (const auto& [service, other] : check.service_arrows) std::cout << service << " -> " << other << "\n";
  std::cout << check.service_arrows.size() << " arrows among services\n";
  EXPECT_LE(groups.size(), 10U);
  EXPECT_LE(check.arrows.size(), 31U);
  // Five of them are of the one that checks the objects of all others.
  EXPECT_LE(check.service_arrows.size(), 11U);
  EXPECT_GE(check.arrows.size(), 10U) << "the includes were not found";
}

struct Planted {
  const char* file;
  const char* line;
};

class BadIncludeTest : public ::testing::TestWithParam<Planted> {};

TEST_P(BadIncludeTest, IsCaught) {
  EXPECT_NE(IncludeViolation(GetParam().file, GetParam().line), std::nullopt)
      << GetParam().file << ": " << GetParam().line;
}

INSTANTIATE_TEST_SUITE_P(
    Planted, BadIncludeTest,
    ::testing::Values(
        Planted{"netns/base/files.cc", "#include \"netns/sys/pci.h\""},
        Planted{"netns/base/files.h", "#include \"cni/protocol/cni_result.h\""},
        Planted{"netns/sys/pci.cc", "#include \"netns/nl/link.h\""},
        Planted{"netns/nl/socket.cc", "#include \"netns/sys/pci.h\""},
        Planted{"netns/kernel.h", "#include \"cni/protocol/cni_result.h\""},
        Planted{"cni/protocol/cni_result.cc", "#include \"cni/fabric/fabric.h\""},
        Planted{"cni/protocol/cni_result.cc", "#include \"netns/kernel.h\""},
        Planted{"cni/fabric/fabric.cc", "#include \"cni/state/journal.h\""},
        Planted{"cni/state/journal.cc", "#include \"cni/attachment/attach_plan.h\""},
        Planted{"cni/state/journal.cc", "#include \"cni/nccl/nccl_config.h\""},
        Planted{"cni/nccl/topology_file.cc", "#include \"deviceplugin/node/topology/topology.h\""},
        Planted{"cni/plugin/add.cc", "#include \"ipam/store/store.h\""},
        Planted{"cni/plugin/add.cc", "#include \"deviceplugin/node/inventory/inventory.h\""},
        Planted{"ipam/store/store.cc", "#include \"cni/state/journal.h\""},
        Planted{"ipam/store/store.cc", "#include \"cni/attachment/attach_plan.h\""},
        Planted{"ipam/store/store.cc", "#include \"deviceplugin/node/inventory/inventory.h\""},
        Planted{"deviceplugin/daemon/main.cc", "#include \"tests/support/fake_kernel/fake_kernel.h\""},
        Planted{"cni/protocol/cni_result.cc", "#include <cni/state/journal.h>"},
        Planted{"cni/protocol/cni_result.cc", "  #  include   \"cni/state/journal.h\""},
        Planted{"cni/protocol/cni_result.cc", "#include \"result.h\""},
        Planted{"cni/protocol/cni_result.cc", "#include \"../state/journal.h\""},
        Planted{"cni/protocol/cni_result.cc", "#include JOURNAL_HEADER"},
        Planted{"cni/plugin/add.cc", "#include <grpcpp/grpcpp.h>"},
        Planted{"ipam/store/store.cc", "#include <spdlog/spdlog.h>"},
        Planted{"deviceplugin/daemon/main.cc", "#include <openssl/ssl.h>"},
        Planted{"ipam/store/store.cc", "#include <boost/beast/http.hpp>"},
        Planted{"deviceplugin/node/resources/plan.cc", "#include <yaml-cpp/yaml.h>"},
        Planted{"deviceplugin/tools/migrate/chain.cc", "#include <toml++/toml.h>"},
        Planted{"netns/sys/pci.cc", "#include <hwloc.h>"},
        Planted{"cni/plugin/add.cc", "#include <google/protobuf/message.h>"},
        Planted{"cni/plugin/add.cc", "#include <prometheus/counter.h>"},
        Planted{"ipam/plugin/ipam_main.cc", "#include <CLI/CLI.hpp>"},
        Planted{"cni/plugin/add.cc", "#include <netlink/msg.h>"},
        Planted{"netns/linux_kernel.h", "#include <netlink/msg.h>"},
        Planted{"deviceplugin/tools/rdma_test/runs.cc", "#include <infiniband/verbs.h>"},
        Planted{"netns/base/node.cc", "#include <nlohmann/json.hpp>"},
        Planted{"cni/state/journal.cc", "#include <lmdb.h>"},
        Planted{"cni/protocol/cni_result.cc", "#include <gtest/gtest.h>"},
        Planted{"elsewhere/x.cc", "#include <string>"}));

TEST(DependenciesTest, GoodIncludesPass) {
  for (const Planted& good :
       {Planted{"cni/plugin/add.cc", "#include \"netns/kernel.h\""},
        Planted{"cni/plugin/add.cc", "#include \"cni/state/journal.h\""},
        Planted{"netns/linux_kernel.cc", "#include \"netns/sys/pci.h\""},
        Planted{"netns/nl/socket.h", "#include <netlink/msg.h>"},
        Planted{"deviceplugin/daemon/main.cc", "#include <grpcpp/grpcpp.h>"},
        Planted{"deviceplugin/daemon/main.cc", "#include \"deviceplugin/services/kubelet/proto/x.pb.h\""},
        Planted{"deviceplugin/daemon/main.cc", "#include \"cni/state/journal.h\""},
        Planted{"ipam/store/store.cc", "#include <lmdb.h>"},
        Planted{"ipam/store/store.cc", "#include <string>"},
        Planted{"ipam/store/store.cc", "int x;  // #include \"cni/state/journal.h\""}}) {
    EXPECT_EQ(IncludeViolation(good.file, good.line), std::nullopt) << good.file << ": " << good.line;
  }
}

TEST(DependenciesTest, AWholeTreeIsWalked) {
  const TempRoot tree;
  tree.Write("/netns/base/a.h", "#include <string>\n");
  tree.Write("/cni/protocol/deep/b.cc",
             "// text\n#include \"netns/base/a.h\"\n\n#include \"ipam/store/store.h\"\n");
  tree.Write("/cni/protocol/notes.md", "#include \"ipam/store/store.h\"\n");
  const IncludeCheck check = CheckIncludes(tree.directory());
  EXPECT_EQ(check.files, 2);
  EXPECT_EQ(check.violations, std::vector<std::string>{
                                  "cni/protocol/deep/b.cc:4: cni/protocol/ must not use ipam/store/store.h"});
}

}  // namespace
}  // namespace railhead::testing
