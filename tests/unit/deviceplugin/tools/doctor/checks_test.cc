// All checks: a good node passes all of them, and a node without known facts passes none.
#include "deviceplugin/tools/doctor/checks.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "deviceplugin/tools/doctor/report.h"
#include "deviceplugin/tools/doctor/verdict.h"
#include "netns/json/record_io.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/tools/doctor/support.h"

namespace railhead::testing {
namespace {

using doctor::Status;

// The loops over all checks below show something only if there are any.
TEST(ChecksTest, ThereAreMany) {
  EXPECT_GE(doctor::AllChecks().size(), 25U);
}

TEST(ChecksTest, AGoodNodeIsWell) {
  const doctor::NodeFacts node = GoodNode();
  for (const doctor::Check& check : doctor::AllChecks()) {
    const doctor::Verdict verdict = check.judge(node);
    EXPECT_EQ(WordOf(verdict.status()), "ok") << check.id << ": " << verdict.Found();
    EXPECT_FALSE(verdict.observations().empty()) << check.id;
  }
}

// Unknown facts are neither good nor bad. But a missing fabric.json and missing modules are known to be
// missing.
TEST(ChecksTest, NothingIsGuessed) {
  const doctor::NodeFacts nothing;
  for (const doctor::Check& check : doctor::AllChecks()) {
    if (check.id == "fabric.valid" || check.id == "node.modules") continue;
    const doctor::Verdict verdict = check.judge(nothing);
    EXPECT_EQ(WordOf(verdict.status()), "skipped") << check.id << ": " << verdict.Found();
    EXPECT_NE(verdict.Found(), "") << check.id << " is skipped without a reason";
  }
}

// PFs without readable attributes, as a reader without permission sees them.
TEST(ChecksTest, NothingIsGuessedOfPfs) {
  doctor::NodeFacts node;
  node.fabric = *GoodNode().fabric;
  for (const char* rail : {"rail0", "rail1"}) {
    doctor::PfFacts pf;
    pf.rail = rail;
    node.pfs.push_back(pf);
  }
  const std::set<std::string_view> read = {"fabric.valid",  "fabric.rails",    "sriov.vfs",
                                           "node.modules",  "sriov.bandwidth", "runtime.cni",
                                           "fabric.probes", "fabric.index"};
  for (const doctor::Check& check : doctor::AllChecks()) {
    if (read.contains(check.id)) continue;
    const doctor::Verdict verdict = check.judge(node);
    EXPECT_EQ(WordOf(verdict.status()), "skipped") << check.id << ": " << verdict.Found();
  }
}

TEST(ChecksTest, IdsAreUniqueAndDescribed) {
  std::set<std::string_view> ids;
  for (const doctor::Check& check : doctor::AllChecks()) {
    EXPECT_TRUE(ids.insert(check.id).second) << check.id;
    EXPECT_NE(check.id.find('.'), std::string_view::npos) << check.id;
    EXPECT_FALSE(check.title.empty() || check.why.empty()) << check.id;
  }
}

// docs/reference/doctor-checks.md has a row for each, and for no other.
TEST(ChecksTest, AreDocumented) {
  const std::string page = ReadFileAt(DOCTOR_PAGE);
  std::size_t rows = 0;
  for (auto at = page.find("\n| `"); at != std::string::npos; at = page.find("\n| `", at + 1)) {
    const std::string word = page.substr(at + 4, page.find('`', at + 4) - at - 4);
    rows += word.find('.') == std::string::npos ? 0U : 1U;
  }
  EXPECT_EQ(rows, doctor::AllChecks().size());
  for (const doctor::Check& check : doctor::AllChecks())
    EXPECT_NE(page.find("\n| `" + std::string(check.id) + "` |"), std::string::npos) << check.id;
}

TEST(VerdictTest, TheWorstCounts) {
  doctor::Verdict verdict;
  EXPECT_EQ(verdict.status(), Status::kSkipped);
  verdict.Skip("unknown").Ok("fine");
  EXPECT_EQ(verdict.status(), Status::kOk);
  EXPECT_EQ(verdict.Found(), "fine");
  verdict.Warn("a", "mend a").Warn("b", "mend b").Warn("a", "mend a").Warn("c", "").Warn("d", "");
  EXPECT_EQ(verdict.status(), Status::kWarning);
  EXPECT_EQ(verdict.Found(), "a; b; c; and 1 more");
  EXPECT_EQ(verdict.Fix(), "mend a");
  verdict.Note("n", "look");
  EXPECT_EQ(verdict.status(), Status::kWarning);
}

std::vector<std::string> Ids(const Result<std::vector<const doctor::Check*>>& checks) {
  std::vector<std::string> ids;
  if (!checks) return ids;
  for (const doctor::Check* check : *checks) ids.emplace_back(check->id);
  return ids;
}

TEST(SelectTest, ByIdAndByGroup) {
  EXPECT_EQ(Ids(doctor::SelectChecks({}, {})).size(), doctor::AllChecks().size());
  EXPECT_EQ(Ids(doctor::SelectChecks({"pci.acs"}, {})), (std::vector<std::string>{"pci.acs"}));
  EXPECT_EQ(Ids(doctor::SelectChecks({"rdma"}, {"rdma.port"})),
            (std::vector<std::string>{"rdma.netns-mode", "rdma.gid-table", "rdma.node-guid"}));
  EXPECT_EQ(Ids(doctor::SelectChecks({}, {"qos"})).size(), doctor::AllChecks().size() - 4);
}

TEST(SelectTest, UnknownIdsAreErrors) {
  for (const auto& [only, skip] :
       {std::pair<std::vector<std::string>, std::vector<std::string>>{{"pci.asc"}, {}}, {{}, {"pci.asc"}}}) {
    const auto checks = doctor::SelectChecks(only, skip);
    ASSERT_FALSE(checks);
    EXPECT_EQ(checks.error().hint, "did you mean pci.acs?");
  }
  EXPECT_FALSE(doctor::SelectChecks({"rdm"}, {})) << "a group is a whole word";
}

TEST(ReportTest, TheWorstFirst) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].mtu = 1500;
  node.plugin_sockets = std::vector<std::string>{"sriov_net.sock"};
  node.runtimes = doctor::Fact<std::vector<doctor::ProcessFacts>>::Unknown("no /proc");
  auto report =
      doctor::RunChecks(node, *doctor::SelectChecks({"net", "node.memlock", "runtime.device-plugins"}, {}));
  report.elapsed_ms = 12.4;
  EXPECT_EQ(report.Worst(), Status::kFailure);
  EXPECT_EQ(
      ReportAsText(report),
      "failure  net.mtu                 pf1 (0000:13:00.0): MTU 1500, less than the 9000 of rail1\n"
      "         why: RoCE uses the largest of 1024, 2048, 4096 bytes that fits into the MTU\n"
      "         fix: ip link set pf1 mtu 9000, or \"mtu\" in fabric.json's \"provision\"; the switches need "
      "it too\n"
      "warning  runtime.device-plugins  another device plugin: sriov_net.sock\n"
      "         why: two plugins give one VF to two pods\n"
      "         fix: make sure that its selectors leave out the rails' PFs, or remove it "
      "(docs/operate/migration.md)\n"
      "skipped  node.memlock            no /proc\n"
      "ok       net.routes              no rail's route leads to a network of /etc/cni/net.d\n"
      "ok       net.arp                 pf0 (0000:03:00.0): own addresses only; pf1 (0000:13:00.0): own "
      "addresses only\n"
      "ok       net.managed             no network manager configures what pods may get\n"
      "\n6 checks: failure 1, warning 1, note 0, skipped 1, ok 3; 12 ms\n");
}

TEST(ReportTest, OneCheck) {
  const auto report = doctor::RunChecks(GoodNode(), *doctor::SelectChecks({"fabric.valid"}, {}));
  EXPECT_EQ(ReportAsText(report),
            "ok       fabric.valid            2 rails\n"
            "\n1 check: failure 0, warning 0, note 0, skipped 0, ok 1; 0 ms\n");
}

TEST(ReportTest, Json) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].mtu = 1500;
  const auto report = doctor::RunChecks(node, *doctor::SelectChecks({"net.mtu"}, {}));
  const auto json = ToJson(report);
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["node"], "node0");
  EXPECT_EQ(json["counts"]["failure"], 1);
  ASSERT_EQ(json["checks"].size(), 1U);
  const auto& check = json["checks"][0];
  EXPECT_EQ(check["id"], "net.mtu");
  EXPECT_EQ(check["status"], "failure");
  ASSERT_EQ(check["observations"].size(), 2U);
  EXPECT_EQ(check["observations"][0]["status"], "ok");
  EXPECT_EQ(check["observations"][1]["fix"], check["fix"]);
}

}  // namespace
}  // namespace railhead::testing
