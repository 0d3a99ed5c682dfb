// Each rule has a text that breaks this rule and no other.
#include "tests/support/nccl/topology_rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "tests/support/nccl/nccl_model.h"

namespace railhead::testing {
namespace {

constexpr const char* kGood =
    "<system version=\"1\">\n"
    "  <cpu numaid=\"0\" affinity=\"0000ffff\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
    "modelid=\"143\">\n"
    "    <pci busid=\"ffff:ff:02.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "      <pci busid=\"0000:33:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"/>\n"
    "      <pci busid=\"0000:35:00.4\" class=\"0x020000\" link_speed=\"32.0 GT/s PCIe\" "
    "link_width=\"16\"><nic><net "
    "name=\"mlx5_12\"/></nic></pci>\n"
    "    </pci>\n"
    "    <pci busid=\"ffff:ff:03.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "      <pci busid=\"0000:43:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"/>\n"
    "      <pci busid=\"0000:45:00.4\" class=\"0x020000\" link_speed=\"32.0 GT/s PCIe\" "
    "link_width=\"16\"><nic><net "
    "name=\"mlx5_13\"/></nic></pci>\n"
    "    </pci>\n"
    "  </cpu>\n"
    "</system>\n";

struct Breaks {
  const char* name;
  std::string what;  // of kGood: the first of these ...
  std::string by;    // ... becomes this
  std::string sentence;
  bool misread = false;  // NCCL's parser stops there, or misreads it

  friend std::ostream& operator<<(std::ostream& out, const Breaks& breaks) { return out << breaks.name; }
};

std::string Text(const Breaks& breaks) {
  std::string text = kGood;
  const auto at = text.find(breaks.what);
  EXPECT_NE(at, std::string::npos) << breaks.what;
  return at == std::string::npos ? text : text.replace(at, breaks.what.size(), breaks.by);
}

std::string Times(int count, const std::function<std::string(int)>& make) {
  std::string text;
  for (int i = 0; i < count; ++i) text += make(i);
  return text;
}

// An unused GPU, at an address of its own.
std::string Gpu(int number) {
  constexpr const char* kDigits = "0123456789abcdef";
  return std::string("<pci busid=\"00") + kDigits[number / 256] + kDigits[number / 16 % 16] + ":0" +
         kDigits[number % 16] + ":00.0\" class=\"0x030200\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\"/>";
}

std::vector<Breaks> AllBreaks() {
  const std::string net = "<net name=\"mlx5_12\"/>";
  const std::string nic = "<nic>" + net + "</nic>";
  return {
      // NCCL's parser aborts.
      {"XmlDeclaration", "<system", "<?xml version=\"1.0\"?>\n<system", "line 1: there is '?'", true},
      {"Doctype", "<system", "<!DOCTYPE system>\n<system", "line 1: there is '!'", true},
      {"TabBetweenElements", "    <pci", "\t<pci", "there is text between elements", true},
      {"TabBetweenAttributes", " class", "\tclass", "there is a tab", true},
      {"NewlineBetweenAttributes", " class", "\nclass", "goes on in the next line", true},
      {"BlankBeforeEquals", "busid=\"f", "busid =\"f", "'=' after busid is expected", true},
      {"BlankAfterEquals", "busid=\"f", "busid= \"f", "'\"' after busid= is expected", true},
      {"SingleQuotes", "\"0x060400\"", "'0x060400'", "there is ''' where '\"' after class= is expected",
       true},
      {"NoQuotes", "\"16\"", "16", "there is '1' where", true},
      {"TwoBlanks", " class", "  class", "there is a blank where the name of an attribute", true},
      {"BlankAtTheEnd", "\"16\"/>", "\"16\" />", "there is '/' where the name of an attribute", true},
      {"TextBetweenElements", "    <pci", "gpu<pci", "there is text between elements", true},
      {"NoEnd", "</system>\n", "", "the text ends inside of <system>", true},
      {"Truncated", "mlx5_13\"/></nic></pci>\n    </pci>\n  </cpu>\n</system>\n", "mlx5",
       "the text ends where '\"'", true},
      {"CutComment", "</system>\n", "</system><!-- ", "a comment does not end", true},
      {"WrongEnd", "</nic>", "</net>", "</net> closes what is not open", true},
      {"Entity", "GenuineIntel", "Genuine&amp;", "there is '&' where the value of vendor"},
      // Elements.
      {"TwoSystems", "</system>", "</system><system version=\"1\"></system>",
       "one <system> around everything else"},
      {"WrongVersion", "version=\"1\"", "version=\"2\"", "<system> has version=\"2\", which is not 1", true},
      {"NoVersion", " version=\"1\"", "", "<system> lacks version", true},
      {"NoNumaid", " numaid=\"0\"", "", "<cpu> lacks numaid"},
      {"NoAffinity", " affinity=\"0000ffff\"", "", "<cpu> lacks affinity"},
      {"NoArch", " arch=\"x86_64\"", "", "<cpu> lacks arch"},
      {"NoVendor", " vendor=\"GenuineIntel\"", "", "<cpu> lacks vendor"},
      {"NoFamily", " familyid=\"6\"", "", "<cpu> lacks familyid"},
      {"NoModel", " modelid=\"143\"", "", "<cpu> lacks modelid"},
      {"NoBusid", " busid=\"0000:33:00.0\"", "", "<pci> lacks busid"},
      {"NoClass", "33:00.0\" class=\"0x030200\"", "33:00.0\"", "<pci> lacks class"},
      {"NoLinkSpeed", " link_speed=\"32.0 GT/s PCIe\"", "", "<pci> lacks link_speed"},
      {"NoLinkWidth", " link_width=\"16\"", "", "<pci> lacks link_width"},
      {"NoName", " name=\"mlx5_12\"", "", "<net> lacks name"},
      {"NetOutsideNic", nic, net, "<net> is out of place in <pci>", true},
      {"NicOutsidePci", "</cpu>", "<nic></nic></cpu>", "<nic> is out of place in <cpu>"},
      {"GpuOutsidePci", "</cpu>", "<gpu/></cpu>", "<gpu> is out of place in <cpu>", true},
      {"TwoNics", nic, nic + "<nic></nic>", "<pci> has two <nic>"},
      {"Nvlink", "</cpu>", "<nvlink/></cpu>", "<nvlink> is not for NCCL", true},
      {"SwitchOfNoBridgeClass", "ff:02.0\" class=\"0x060400\"", "ff:02.0\" class=\"0x068000\"",
       "is no bridge, but has functions below it"},
      // Values.
      {"UpperCase", "0000:35:00.4", "0000:3A:00.4", "which is not an address like"},
      {"LongDomain", "0000:33:00.0", "10000:33:00.0", "which is not an address like"},
      {"NoDomain", "0000:33:00.0", "33:00.0", "which is not an address like"},
      {"Class", "0x030200", "030200", "which is not a class"},
      {"Width", "link_width=\"16\"", "link_width=\"0\"", "which is not a number of lanes"},
      {"Numaid", "numaid=\"0\"", "numaid=\"-2\"", "which is not a NUMA node"},
      {"EmptyName", "mlx5_12", "", "which is not an RDMA device"},
      {"LongValue", "0000ffff", std::string(254, 'f'), "more than 253 characters", true},
      // What makes one of two.
      {"SameBusid", "0000:33:00.0", "0000:43:00.0", "has busid=\"0000:43:00.0\", as another one has"},
      {"SameName", "mlx5_12", "mlx5_13", "has name=\"mlx5_13\", as another one has"},
      {"SameNode", "</cpu>", "</cpu><cpu numaid=\"0\" affinity=\"\" arch=\"arm64\"></cpu>",
       "as another one has"},
      {"UnknownNode", "</cpu>", "</cpu><cpu numaid=\"-1\" affinity=\"\" arch=\"arm64\"></cpu>",
       "has numaid=\"-1\" beside another"},
      {"SiblingSwitches", "ffff:ff:03.0", "ffff:ff:02.1", "from a sibling in the last digit"},
      {"NicsOfTwoSwitches", "0000:35:00.4", "0000:45:00.3", "from another NIC in the last digit"},
      {"TwiceAnAttribute", " familyid=\"6\"", " familyid=\"6\" familyid=\"6\"", "<cpu> has familyid twice"},
      {"RealBridge", "ffff:ff:02.0\"", "0000:31:00.0\" vendor=\"0x1000a\" device=\"\" subsystem_vendor=\"\"",
       "is a real bridge without subsystem_device"},
      // Text that must not be in the file.
      {"GpuDev", "\"16\"/>", "\"16\"><gpu dev=\"0\"/></pci>", "<gpu> dev=\"0\" overrides the index"},
      {"GpuGdr", "\"16\"/>", "\"16\"><gpu gdr=\"1\"/></pci>", "<gpu> gdr=\"1\" forces GPUDirect"},
      {"NetGdr", "mlx5_12\"", "mlx5_12\" gdr=\"1\"", "<net> gdr=\"1\" forces GPUDirect"},
      {"Broadcom", "33:00.0\"", "33:00.0\" vendor=\"0x1000\"", "makes NCCL look for links between Broadcom"},
      {"Keep", "mlx5_12\"", "mlx5_12\" keep=\"1\"", "has keep, which is not ours to say"},
      {"OneSpeed", "mlx5_12\"", "mlx5_12\" speed=\"100000\"", "the NICs' speeds differ"},
      {"NicOnABridge", "0000:35:00.4\" class=\"0x020000\"", "ffff:ff:05.0\" class=\"0x060400\"",
       "is a bridge, but has a <nic>"},
      {"NicOnAGpu", "35:00.4\" class=\"0x020000\"", "35:00.4\" class=\"0x030000\"",
       "is an accelerator, but has a <nic>"},
      {"TwoNets", net, net + "<net name=\"mlx5_14\"/>", "<nic> has two <net>"},
      // Limits.
      {"Children", "</cpu>", Times(127, Gpu) + "</cpu>", "<cpu> has 129 children, but NCCL takes 128", true},
      {"Elements", "</cpu>",
       Times(120, Gpu) +
           "<pci busid=\"ffff:ff:04.0\" class=\"0x060400\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">" +
           Times(125, [](int number) { return Gpu(number + 120); }) + "</pci></cpu>",
       "258 elements, but NCCL takes 255", true},
  };
}

class TopologyRuleTest : public ::testing::TestWithParam<Breaks> {};

TEST_P(TopologyRuleTest, IsReported) {
  const auto broken = TopologyViolations(Text(GetParam()));
  ASSERT_EQ(broken.size(), 1U) << ::testing::PrintToString(broken) << Text(GetParam());
  EXPECT_NE(broken[0].find(GetParam().sentence), std::string::npos) << broken[0];
}

// The second opinion. If NCCL's parser accepts a mistake, a later part of NCCL fails on it.
TEST_P(TopologyRuleTest, IsMisreadOrNot) {
  EXPECT_EQ(NcclModel::Load(Text(GetParam())).has_value(), !GetParam().misread);
}

INSTANTIATE_TEST_SUITE_P(All, TopologyRuleTest, ::testing::ValuesIn(AllBreaks()),
                         [](const auto& breaks) { return std::string(breaks.param.name); });

std::string Everywhere(std::string text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

TEST(TopologyRulesTest, TheGoodOneIsGood) {
  EXPECT_EQ(TopologyViolations(kGood), std::vector<std::string>());
  EXPECT_TRUE(NcclModel::Load(kGood));
}

TEST(TopologyRulesTest, WhatIsHarmless) {
  const std::string good = kGood;
  EXPECT_EQ(TopologyViolations(Everywhere(good, "numaid=\"0\"", "numaid=\"-1\"")),
            std::vector<std::string>());
  for (const std::string& text :
       {Everywhere(good, "\n", "\r\n"), Everywhere(good, "\n", ""), "<!-- a\t<comment> = 'x' -->\n" + good,
        Everywhere(good, "<nic>", "<nic><!-- two\nlines -->"),
        Everywhere(good, "0000ffff", std::string(253, 'f')), Everywhere(good, "0000ffff", ""),
        Everywhere(good, "</pci>\n    </pci>", "</pci></pci>")}) {
    EXPECT_EQ(TopologyViolations(text), std::vector<std::string>()) << text;
    EXPECT_TRUE(NcclModel::Load(text)) << text;
  }
  const std::string speeds = Everywhere(Everywhere(good, "mlx5_12\"", "mlx5_12\" speed=\"5\""), "mlx5_13\"",
                                        "mlx5_13\" speed=\"5\"");
  EXPECT_EQ(TopologyViolations(speeds), std::vector<std::string>());
  const std::string arm = Everywhere(
      good, "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\"", "arch=\"arm64\"");
  EXPECT_EQ(TopologyViolations(arm), std::vector<std::string>());
  const std::string real =
      Everywhere(good, "ffff:ff:02.0\"",
                 "0000:31:00.0\" vendor=\"0x1af4\" device=\"\" subsystem_vendor=\"\" subsystem_device=\"\"");
  EXPECT_EQ(TopologyViolations(real), std::vector<std::string>());
}

// Neither the seven attributes nor their values are anything that NCCL would not take by itself.
TEST(TopologyRulesTest, ANetHasRoomForSixAttributes) {
  const std::string more = " speed=\"5\" latency=\"1\" port=\"1\" guid=\"0x1\" maxconn=\"2\"";
  std::string text =
      Everywhere(Everywhere(kGood, "mlx5_12\"", "mlx5_12\"" + more), "mlx5_13\"", "mlx5_13\"" + more);
  EXPECT_EQ(TopologyViolations(text), std::vector<std::string>());
  const auto broken = TopologyViolations(Everywhere(text, "mlx5_12\"", "mlx5_12\" coll=\"0\""));
  ASSERT_EQ(broken.size(), 2U);
  EXPECT_NE(broken[1].find("<net> has 7 attributes, but NCCL has room for 6"), std::string::npos)
      << broken[1];
}

// No part of a text passes for the whole.
TEST(TopologyRulesTest, EveryTruncationIsFound) {
  const std::string good = kGood;
  for (std::size_t size = 0; size + 1 < good.size(); ++size) {
    EXPECT_FALSE(TopologyViolations(good.substr(0, size)).empty()) << size;
  }
}

// The second parser is one: what it says of a node's distances is what NCCL's tree means.

std::string Pci(const std::string& busid, const std::string& type, const std::string& inside = "") {
  const std::string head = "<pci busid=\"" + busid + "\" class=\"" + type + "\"";
  return inside.empty() ? head + "/>" : head + ">" + inside + "</pci>";
}
std::string Nic(const std::string& busid, const std::string& net) {
  return Pci(busid, "0x020000", "<nic><net name=\"" + net + "\"/></nic>");
}
std::string Cpu(const std::string& node, const std::string& inside) {
  return "<cpu numaid=\"" + node + "\">" + inside + "</cpu>";
}
std::string System(const std::string& inside) {
  return "<system version=\"1\">" + inside + "</system>";
}

TEST(NcclModelTest, Distances) {
  const std::string near =
      Pci("ffff:ff:02.0", "0x060400", Pci("0000:01:00.0", "0x030200") + Nic("0000:02:00.0", "near"));
  const std::string outer = Pci("ffff:ff:01.0", "0x060400", near + Nic("0000:03:00.0", "above"));
  const auto nccl = NcclModel::Load(
      System(Cpu("0", outer + Nic("0000:04:00.0", "beside")) + Cpu("1", Nic("0000:05:00.0", "far"))));
  ASSERT_TRUE(nccl);
  EXPECT_EQ(nccl->PathBetween("near", "0000:01:00.0"), "PIX");
  EXPECT_EQ(nccl->PathBetween("above", "0000:01:00.0"), "PXB");
  EXPECT_EQ(nccl->PathBetween("beside", "0000:01:00.0"), "PHB");
  EXPECT_EQ(nccl->PathBetween("far", "0000:01:00.0"), "SYS");
  EXPECT_EQ(nccl->PathBetween("far", "0000:09:00.0"), "");
  EXPECT_EQ(nccl->NodeOf("far"), "1");
  EXPECT_EQ(nccl->Switches(), (std::vector<std::string>{"ffff:ff:01.0", "ffff:ff:02.0"}));
}

TEST(NcclModelTest, Merging) {
  const auto nccl = NcclModel::Load(System(Cpu(
      "0", Pci("ffff:ff:02.0", "0x060400", Nic("0000:01:00.2", "a")) +
               Pci("ffff:ff:02.1", "0x060400", Nic("0000:02:00.0", "b")) +
               Pci("ffff:ff:03.0", "0x060400",
                   Nic("0000:03:00.2", "c") + Nic("0000:03:00.3", "d") +
                       Pci("0000:04:00.0", "0x020000", "<nic><net name=\"e\"/><net name=\"f\"/></nic>")))));
  ASSERT_TRUE(nccl);
  EXPECT_TRUE(nccl->WouldMerge("a", "b"));
  EXPECT_TRUE(nccl->WouldMerge("c", "d"));
  EXPECT_TRUE(nccl->WouldMerge("e", "f"));
  EXPECT_FALSE(nccl->WouldMerge("a", "c"));
  EXPECT_FALSE(nccl->WouldMerge("c", "e"));
}

TEST(NcclModelTest, WhatNcclStopsAt) {
  std::string why;
  EXPECT_FALSE(NcclModel::Load("<system version=\"1\"", &why));
  EXPECT_EQ(why, "unexpected end");
  EXPECT_FALSE(NcclModel::Load("<system version='1'/>", &why));
  EXPECT_EQ(why, "expected a double quote");
  EXPECT_FALSE(NcclModel::Load("<system version=\"1\">", &why));
  EXPECT_EQ(why, "unterminated system");
  EXPECT_FALSE(NcclModel::Load("<?xml version=\"1.0\"?>", &why));
  EXPECT_TRUE(NcclModel::Load("<system version=\"1\"/>"));
  EXPECT_TRUE(NcclModel::Load("<!-- -->\r\n<system version=\"1\">\r\n</system>\r\n"));
}

}  // namespace
}  // namespace railhead::testing
