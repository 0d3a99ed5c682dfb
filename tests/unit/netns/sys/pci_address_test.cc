#include <gtest/gtest.h>

#include "netns/sys/pci.h"

namespace railhead {
namespace {

TEST(PciAddress, PrintsWhatItParsed) {
  for (const char* text : {"0000:43:10.0", "0000:00:1f.7", "ffff:ff:1f.7", "10000:e1:00.0"}) {
    const auto address = PciAddress::Parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(PciAddress, TakesUpperCaseAndPrintsLowerCase) {
  const auto address = PciAddress::Parse("00AB:C3:1E.1");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->ToString(), "00ab:c3:1e.1");
}

TEST(PciAddress, RefusesEverythingElse) {
  for (const char* text :
       {"", "43:10.0", "000:43:10.0", "0000:43:10", "0000:43:10.", "0000:43:10.8", "0000:43:20.0",
        "0000:43:1.0", "0000-43-10.0", "0000:43:10.0 ", " 0000:43:10.0", "0000:4g:10.0", "0000:43:+1.0",
        "123456789:43:10.0", "../../..:43:10.0", "0000:43:10.00"}) {
    EXPECT_FALSE(PciAddress::Parse(text)) << text;
  }
}

TEST(PciAddress, SortsAsItsText) {
  const auto low = PciAddress::Parse("0000:43:10.7");
  const auto high = PciAddress::Parse("0000:43:11.0");
  const auto domain = PciAddress::Parse("0001:00:00.0");
  EXPECT_LT(*low, *high);
  EXPECT_LT(*high, *domain);
}

}  // namespace
}  // namespace railhead
