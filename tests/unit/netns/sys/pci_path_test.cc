#include "netns/sys/pci_path.h"

#include <gtest/gtest.h>

#include <vector>

namespace railhead::testing {
namespace {

struct Pair {
  const char* a;
  const char* b;
  PciPath path;  // both on NUMA node 0
};

class PciPathTest : public ::testing::TestWithParam<Pair> {};

TEST_P(PciPathTest, BothWays) {
  const PciPlace a{GetParam().a, 0};
  const PciPlace b{GetParam().b, 0};
  EXPECT_EQ(PciPathBetween(a, b), GetParam().path) << a.path << " and " << b.path;
  EXPECT_EQ(PciPathBetween(b, a), GetParam().path) << b.path << " and " << a.path;
}

#define PORT "/sys/devices/pci0000:15/0000:15:01.0"
#define SWITCH PORT "/0000:16:00.0"

INSTANTIATE_TEST_SUITE_P(
    Pairs, PciPathTest,
    ::testing::Values(
        Pair{SWITCH "/0000:17:00.0/0000:18:00.0", SWITCH "/0000:17:00.0/0000:18:00.0", PciPath::kPix},
        // Functions of one device, and a PF and its VF.
        Pair{SWITCH "/0000:17:00.0/0000:18:00.0", SWITCH "/0000:17:00.0/0000:18:00.1", PciPath::kPix},
        Pair{PORT "/0000:16:00.0", PORT "/0000:16:02.1", PciPath::kPix},
        // One switch.
        Pair{SWITCH "/0000:17:00.0/0000:18:00.0", SWITCH "/0000:17:01.0/0000:19:00.0", PciPath::kPix},
        // A switch below the switch, on one side and on both.
        Pair{SWITCH "/0000:17:00.0/0000:18:00.0",
             SWITCH "/0000:17:01.0/0000:19:00.0/0000:1a:00.0/0000:1b:00.0", PciPath::kPxb},
        Pair{SWITCH "/0000:17:00.0/0000:18:00.0/0000:19:00.0/0000:1a:00.0",
             SWITCH "/0000:17:01.0/0000:1c:00.0/0000:1d:00.0/0000:1e:00.0", PciPath::kPxb},
        // Two root ports of one host bridge, and the root bus itself.
        Pair{SWITCH "/0000:17:00.0/0000:18:00.0", "/sys/devices/pci0000:15/0000:15:02.0/0000:1f:00.0",
             PciPath::kPhb},
        Pair{"/sys/devices/pci0000:00/0000:00:05.0", "/sys/devices/pci0000:00/0000:00:06.0", PciPath::kPhb},
        // Names that begin alike are not the same.
        Pair{"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0",
             "/sys/devices/pci0000:00/0000:00:01.1/0000:02:00.0", PciPath::kPhb},
        Pair{"/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0",
             "/sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0", PciPath::kNode},
        Pair{"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0",
             "/sys/devices/pci10000:00/10000:00:01.0/10000:01:00.0", PciPath::kNode},
        // The host bridge below other devices: ARM, Hyper-V, Intel VMD.
        Pair{"/sys/devices/platform/a/pci0000:00/0000:00:01.0/0000:01:00.0",
             "/sys/devices/platform/a/pci0000:00/0000:00:02.0/0000:02:00.0", PciPath::kPhb},
        Pair{"/sys/devices/pci0000:3a/0000:3a:00.5/pci10000:00/10000:00:02.0/10000:01:00.0",
             "/sys/devices/pci0000:3a/0000:3a:02.0/0000:3b:00.0", PciPath::kNode},
        // Nothing known.
        Pair{"", "", PciPath::kNode}));

TEST(PciPathNumaTest, TheNodeTellsNodeFromSys) {
  const char* a = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0";
  const char* b = "/sys/devices/pci0000:97/0000:97:01.0/0000:98:00.0";
  EXPECT_EQ(PciPathBetween({a, 0}, {b, 0}), PciPath::kNode);
  EXPECT_EQ(PciPathBetween({a, 0}, {b, 1}), PciPath::kSys);
  EXPECT_EQ(PciPathBetween({a, std::nullopt}, {b, std::nullopt}), PciPath::kNode);
  EXPECT_EQ(PciPathBetween({a, 0}, {b, std::nullopt}), PciPath::kSys);
  // Below one host bridge the node does not matter.
  EXPECT_EQ(PciPathBetween({a, 0}, {a, 1}), PciPath::kPix);
}

TEST(PciPathNameTest, NamesGoBothWays) {
  const std::vector<PciPath> all = {PciPath::kPix, PciPath::kPxb, PciPath::kPhb, PciPath::kNode,
                                    PciPath::kSys};
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(ParsePciPath(NameOf(all[i])), all[i]);
    for (std::size_t j = 0; j < all.size(); ++j) EXPECT_EQ(Nearer(all[i], all[j]), i < j);
  }
  EXPECT_EQ(NameOf(PciPath::kPxb), "PXB");
  EXPECT_EQ(ParsePciPath("node"), PciPath::kNode);
  EXPECT_EQ(ParsePciPath("NV18"), std::nullopt);
  EXPECT_EQ(ParsePciPath(""), std::nullopt);
}

}  // namespace
}  // namespace railhead::testing
