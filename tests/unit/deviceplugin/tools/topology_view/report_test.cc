// What is shown of a node: use of VFs, text, JSON, picture.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cni/state/journal.h"
#include "deviceplugin/tools/topology_view/node_report.h"
#include "deviceplugin/tools/topology_view/picture.h"
#include "deviceplugin/tools/topology_view/svg.h"
#include "netns/base/node.h"
#include "tests/support/process.h"
#include "tests/support/sysfs/machines.h"

namespace railhead::testing {
namespace {

constexpr const char* kFabric = R"({"version": 1, "rails": [
  {"name": "rail<0>", "pf": "rail0", "vlan": 100},
  {"name": "rail1", "pf": "0000:40:00.0", "vlan": 101},
  {"name": "rail2", "pf": 4}]})";

class ReportTest : public ::testing::Test {
 protected:
  ReportTest() : machine_(MakeDgxH100(sysfs_)) {
    sysfs_.Write("/etc/railhead/fabric.json", kFabric);
    sysfs_.Write("/etc/railhead/node-name", "node-a&\"b\"\n");
    vfs_ = sysfs_.AddVfs(machine_.nics[0], 20);
  }

  // The device is in a pod.
  void Attach(const std::string& device, const std::string& pf) {
    JournalEntry entry;
    entry.key = {"rails", "sandbox-" + std::to_string(++attachments_), "net1"};
    entry.boot_id = *BootId(sysfs_.root());
    entry.phase = Phase::kDone;
    entry.netns = "/run/netns/x";
    AttachedLink link;
    link.device = device;
    link.pf = pf;
    link.vf = pf.empty() ? -1 : 0;
    link.pod_name = "net1";
    entry.links = {link};
    const auto written = Journal(sysfs_.root()).Write(entry);
    ASSERT_TRUE(written) << Describe(written.error());
  }

  [[nodiscard]] NodeReport Read() const {
    auto report = ReadNodeReport(sysfs_.root());
    if (!report) throw std::runtime_error(Describe(report.error()));  // ends this test alone
    return *std::move(report);
  }

  FakeSysfs sysfs_;
  FakeMachine machine_;
  std::vector<std::string> vfs_;
  int attachments_ = 0;
};

TEST_F(ReportTest, RailsAndUseOfVfs) {
  Attach(vfs_[3], machine_.nics[0]);
  Attach(vfs_[7], machine_.nics[0]);
  Attach(machine_.nics[3], "");
  const NodeReport report = Read();
  ASSERT_EQ(report.nics.size(), machine_.nics.size());
  EXPECT_EQ(report.nics[0].rail, "rail<0>");
  EXPECT_EQ(report.nics[0].vlan, 100);
  EXPECT_EQ(report.nics[0].InUse(), 2);
  ASSERT_EQ(report.nics[0].vfs.size(), 20U);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(report.nics[0].vfs[i].index, i);
    EXPECT_EQ(report.nics[0].vfs[i].id, vfs_[i]);
    EXPECT_EQ(report.nics[0].vfs[i].in_use, i == 3 || i == 7) << i;
  }
  EXPECT_FALSE(report.nics[0].in_use);
  EXPECT_EQ(report.nics[3].rail, "rail1");
  EXPECT_TRUE(report.nics[3].in_use);
  // A position counts in PCI order.
  EXPECT_EQ(report.nics[4].rail, "rail2");
  EXPECT_EQ(report.nics[4].vlan, std::nullopt);
  EXPECT_EQ(report.nics[5].rail, "");
  EXPECT_EQ(report.notes, std::vector<std::string>{});
  EXPECT_EQ(report.uuids[2], "GPU-00000000-0000-0000-0000-000000000002");
}

TEST_F(ReportTest, ADamagedAttachmentIsNoted) {
  Attach(vfs_[3], machine_.nics[0]);
  sysfs_.Write("/run/railhead/attachments/sandbox-1/rails@net1.json", "{");
  const NodeReport report = Read();
  EXPECT_EQ(report.nics[0].InUse(), 1) << "nobody knows whether it is";
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_NE(report.notes[0].find("rails@net1.json"), std::string::npos) << report.notes[0];
}

TEST_F(ReportTest, Json) {
  Attach(vfs_[3], machine_.nics[0]);
  sysfs_.Write(kTopologyPath, R"({"paths": [
    {"nic": "0000:18:00.0", "accelerator": "0000:1b:00.0", "path": "PIX"},
    {"nic": "0000:77:00.0", "accelerator": "0000:1b:00.0", "path": "PIX"}]})");
  const auto json = nlohmann::json::parse(ReportJson(Read()));
  EXPECT_EQ(json["node"], "node-a&\"b\"");
  ASSERT_EQ(json["accelerators"].size(), 8U);
  EXPECT_EQ(json["accelerators"][1],
            nlohmann::json::parse(R"({"name": "GPU1", "address": "0000:43:00.0", "vendor": "10de",
              "device": "2330", "driver": "nvidia", "numaNode": 0,
              "uuid": "GPU-00000000-0000-0000-0000-000000000001"})"));
  ASSERT_EQ(json["nics"].size(), 12U);
  EXPECT_EQ(json["nics"][0], nlohmann::json({{"name", "NIC0"},
                                             {"address", "0000:18:00.0"},
                                             {"netdev", "rail0"},
                                             {"rdmaDevice", "mlx5_0"},
                                             {"numaNode", 0},
                                             {"rail", "rail<0>"},
                                             {"vlan", 100},
                                             {"inUse", false},
                                             {"vfs", 20},
                                             {"vfsFree", 19},
                                             {"vfsInUse", nlohmann::json::array({vfs_[3]})}}));
  EXPECT_EQ(json["paths"].size(), 96U);
  EXPECT_EQ(json["acceleratorPaths"].size(), 28U);
  EXPECT_EQ(json["nicPaths"].size(), 66U);
  EXPECT_EQ(json["paths"][0], nlohmann::json::parse(R"({"nic": "0000:18:00.0",
    "accelerator": "0000:1b:00.0", "path": "PIX"})"));
  EXPECT_EQ(json["paths"][1]["path"], "NODE");
  EXPECT_EQ(json["nicPaths"][11], nlohmann::json::parse(R"({"between": ["0000:29:00.0", "0000:29:00.1"],
    "path": "PIX"})"));
  ASSERT_EQ(json["notes"].size(), 1U);
  EXPECT_NE(json["notes"][0].get<std::string>().find("/paths/1/nic"), std::string::npos);
  // What it prints may be given back to it.
  const nlohmann::json again = {{"paths", json["paths"]}};
  const auto config = ParseTopologyConfig(again.dump(), "printed");
  ASSERT_TRUE(config) << Describe(config.error());
  EXPECT_EQ(config->paths.size(), 96U);
}

TEST_F(ReportTest, ANameThatIsNoUtf8DoesNotStopIt) {
  NodeReport report = Read();
  report.nics[0].rail = "a\xff\x01";
  const auto json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json["nics"][0]["rail"], "a\xef\xbf\xbd\x01");
  EXPECT_NE(DrawNode(report).find("rail a??"), std::string::npos);
}

// Elements of a class.
int Count(const std::string& svg, const std::string& style) {
  const std::string what = "<rect class=\"" + style + "\"";
  int count = 0;
  for (auto at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++count;
  return count;
}

// Parses the document, and looks that its boxes are in it and overlap only by nesting.
constexpr const char* kCheckSvg = R"(
import sys, xml.etree.ElementTree as tree
svg = '{http://www.w3.org/2000/svg}'
root = tree.fromstring(sys.stdin.buffer.read())
assert root.tag == svg + 'svg', root.tag
def box(e):
    x, y = int(e.get('x')), int(e.get('y'))
    return x, y, x + int(e.get('width')), y + int(e.get('height'))
def inside(a, b):
    return a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]
def apart(a, b):
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
whole = (0, 0, int(root.get('width')), int(root.get('height')))
boxes = [box(e) for e in root.iter(svg + 'rect')]
for i, a in enumerate(boxes):
    assert inside(a, whole), (a, 'is outside', whole)
    for b in boxes[:i]:
        assert a != b and (inside(a, b) or inside(b, a) or apart(a, b)), (a, 'overlaps', b)
for e in root.iter(svg + 'text'):
    assert 0 < int(e.get('x')) < whole[2] and 0 < int(e.get('y')) < whole[3], e.text
)";

// What is wrong with a picture; "" for nothing.
std::string XmlError(const std::string& document) {
  const ProcessOutput checked = RunProcess({"/usr/bin/python3", "-c", kCheckSvg}, {}, document);
  return checked.status == 0 ? "" : "status " + std::to_string(checked.status) + ": " + checked.err;
}

TEST_F(ReportTest, TheCheckOfPicturesCanFail) {
  const auto svg = [](const std::string& inside) {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"100\">" + inside + "</svg>";
  };
  const auto box = [](const std::string& x, const std::string& width) {
    return "<rect x=\"" + x + "\" y=\"0\" width=\"" + width + "\" height=\"10\"/>";
  };
  EXPECT_EQ(XmlError(svg("<text x=\"1\" y=\"1\">a</text>" + box("0", "50") + box("5", "10"))), "");
  EXPECT_NE(XmlError(svg("<rect>")), "");
  EXPECT_NE(XmlError(svg("<text x=\"1\" y=\"1\">a & b</text>")), "");
  EXPECT_NE(XmlError(svg(box("0", "50") + box("45", "10"))), "");
  EXPECT_NE(XmlError(svg(box("0", "101"))), "");
}

TEST_F(ReportTest, ThePictureHasEverything) {
  Attach(vfs_[3], machine_.nics[0]);
  const std::string svg = DrawNode(Read());
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Count(svg, "numa"), 2);
  EXPECT_EQ(Count(svg, "host"), 10);
  EXPECT_EQ(Count(svg, "switch"), 18);  // two at each GPU, one at each pair of storage ports
  EXPECT_EQ(Count(svg, "gpu"), 8);
  EXPECT_EQ(Count(svg, "nic"), 12);
  EXPECT_EQ(Count(svg, "used"), 1 + 1);  // and in the legend
  EXPECT_EQ(Count(svg, "free"), 19 + 1);
  EXPECT_NE(svg.find("rail rail&lt;0&gt; VLAN 100"), std::string::npos);
  EXPECT_NE(svg.find("Node node-a&amp;&quot;b&quot;"), std::string::npos);
  EXPECT_NE(svg.find("<title>VF 3, " + vfs_[3] + ", in use</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>VF 4, " + vfs_[4] + ", free</title>"), std::string::npos);
}

class PictureTest : public ::testing::TestWithParam<MachineKind> {};

TEST_P(PictureTest, IsWellFormed) {
  FakeSysfs sysfs;
  const FakeMachine machine = GetParam().make(sysfs);
  const auto report = ReadNodeReport(sysfs.root());
  ASSERT_TRUE(report) << Describe(report.error());
  const std::string svg = DrawNode(*report);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Count(svg, "gpu"), static_cast<int>(machine.accelerators.size()));
  EXPECT_EQ(Count(svg, "nic"), static_cast<int>(machine.nics.size()));
}

INSTANTIATE_TEST_SUITE_P(All, PictureTest, ::testing::ValuesIn(AllMachines()),
                         [](const auto& kind) { return kind.param.name; });

TEST(PictureOfNothingTest, IsWellFormed) {
  const FakeSysfs empty;
  const auto report = ReadNodeReport(empty.root());
  ASSERT_TRUE(report) << Describe(report.error());
  EXPECT_EQ(XmlError(DrawNode(*report)), "");
}

TEST(SvgTest, NothingBecomesMarkup) {
  EXPECT_EQ(EscapeXml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(EscapeXml("]]><script>"), "]]&gt;&lt;script&gt;");
  EXPECT_EQ(EscapeXml("Größe 漢 😀"), "Größe 漢 😀");
  // Control characters, bytes that are no UTF-8, overlong, surrogates, U+FFFE.
  EXPECT_EQ(EscapeXml(std::string("a\0b\x01\x7f\n", 6)), "a?b???");
  EXPECT_EQ(EscapeXml("\xff\xc3"), "??");
  EXPECT_EQ(EscapeXml("\xc0\xaf"), "??");
  EXPECT_EQ(EscapeXml("\xed\xa0\x80"), "???");
  EXPECT_EQ(EscapeXml("\xef\xbf\xbe"), "???");
}

TEST(SvgTest, ShortenedCountsCharacters) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abcd", 3), "ab…");
  EXPECT_EQ(Shortened("äöüß", 3), "äö…");
  EXPECT_EQ(Shortened("", 3), "");
}

}  // namespace
}  // namespace railhead::testing
