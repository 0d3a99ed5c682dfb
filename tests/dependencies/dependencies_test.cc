// The direction of dependencies holds in all sources, and the check would notice.
#include <gtest/gtest.h>

#include "tests/cni/temp_root.h"
#include "tests/dependencies/include_rules.h"

namespace railhead::testing {
namespace {

TEST(DependenciesTest, AllSourcesKeepTheDirection) {
  const IncludeCheck check = CheckIncludes(SOURCE_DIR);
  EXPECT_GT(check.files, 100) << "the sources were not found";
  EXPECT_GT(check.includes, 500);
  for (const auto& violation : check.violations) ADD_FAILURE() << violation;
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
    ::testing::Values(Planted{"netns/base/files.cc", "#include \"netns/sys/pci.h\""},
                      Planted{"netns/base/files.h", "#include \"cni/protocol/cni_result.h\""},
                      Planted{"netns/sys/pci.cc", "#include \"netns/nl/link.h\""},
                      Planted{"netns/nl/socket.cc", "#include \"netns/sys/pci.h\""},
                      Planted{"netns/kernel.h", "#include \"cni/protocol/cni_result.h\""},
                      Planted{"cni/protocol/cni_result.cc", "#include \"cni/fabric/fabric.h\""},
                      Planted{"cni/protocol/cni_result.cc", "#include \"netns/kernel.h\""},
                      Planted{"cni/fabric/fabric.cc", "#include \"cni/state/journal.h\""},
                      Planted{"cni/state/journal.cc", "#include \"cni/attachment/attach_plan.h\""},
                      Planted{"cni/nccl/topology_file.cc", "#include \"cni/fabric/fabric.h\""},
                      Planted{"cni/state/journal.cc", "#include \"cni/nccl/nccl_files.h\""},
                      Planted{"cni/nccl/topology_file.cc",
                              "#include \"deviceplugin/node/topology/topology_config.h\""},
                      Planted{"cni/plugin/add.cc", "#include \"ipam/store/store.h\""},
                      Planted{"cni/plugin/add.cc", "#include \"deviceplugin/node/inventory/inventory.h\""},
                      Planted{"ipam/store/store.cc", "#include \"cni/state/journal.h\""},
                      Planted{"ipam/store/store.cc", "#include \"cni/attachment/attach_plan.h\""},
                      Planted{"ipam/store/store.cc", "#include \"deviceplugin/node/inventory/inventory.h\""},
                      Planted{"deviceplugin/daemon/main.cc", "#include \"tests/fake/fake_kernel.h\""},
                      Planted{"cni/protocol/cni_result.cc", "#include <cni/state/journal.h>"},
                      Planted{"cni/protocol/cni_result.cc", "  #  include   \"cni/state/journal.h\""},
                      Planted{"cni/protocol/cni_result.cc", "#include \"result.h\""},
                      Planted{"cni/protocol/cni_result.cc", "#include \"../state/journal.h\""},
                      Planted{"cni/protocol/cni_result.cc", "#include JOURNAL_HEADER"},
                      Planted{"cni/plugin/add.cc", "#include <grpcpp/grpcpp.h>"},
                      Planted{"ipam/store/store.cc", "#include <spdlog/spdlog.h>"},
                      Planted{"deviceplugin/daemon/main.cc", "#include <openssl/ssl.h>"},
                      Planted{"ipam/store/store.cc", "#include <boost/beast/http.hpp>"},
                      Planted{"deviceplugin/node/resources/advertised.cc", "#include <yaml-cpp/yaml.h>"},
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
        Planted{"netns/nl/message.h", "#include <netlink/msg.h>"},
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
