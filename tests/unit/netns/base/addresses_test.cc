// Ranges of addresses, as people write them.
#include "netns/base/addresses.h"

#include <gtest/gtest.h>

#include <utility>

namespace railhead::testing {
namespace {

TEST(IpAddressTest, ThePreviousOneBorrows) {
  const auto previous = [](const char* text) { return IpAddress::Parse(text)->Previous(); };
  EXPECT_EQ(previous("10.0.1.0"), IpAddress::Parse("10.0.0.255"));
  EXPECT_EQ(previous("fd00:0:0:1::"), IpAddress::Parse("fd00::ffff:ffff:ffff:ffff"));
  EXPECT_EQ(previous("0.0.0.0"), std::nullopt);
  EXPECT_EQ(previous("::"), std::nullopt);
}

TEST(IpRangeTest, ParsesItsForms) {
  for (const auto& [text, shown] : {std::pair{"10.0.0.3", "10.0.0.3"},
                                    {"10.0.0.3-10.0.0.3", "10.0.0.3"},
                                    {"10.0.0.3-10.0.0.9", "10.0.0.3-10.0.0.9"},
                                    {"10.0.0.6/30", "10.0.0.4-10.0.0.7"},
                                    {"fd00::1-fd00::f", "fd00::1-fd00::f"}}) {
    const auto range = IpRange::Parse(text);
    ASSERT_TRUE(range) << text;
    EXPECT_EQ(range->ToString(), shown);
    EXPECT_TRUE(range->Contains(range->first) && range->Contains(range->last));
    EXPECT_FALSE(range->Contains(range->last.Plus(1)));
  }
}

TEST(IpRangeTest, RefusesWhatIsNoneWithTheWayOut) {
  for (const auto& [text, why] : {std::pair{"10.0.0.9-10.0.0.1", "ends before it begins"},
                                  {"10.0.0.1-fd00::1", "mixes IPv4 and IPv6"},
                                  {"", "is not an address, range or prefix"},
                                  {"-", "is not an address"},
                                  {"10.0.0.1-", "is not an address"},
                                  {"-10.0.0.1", "is not an address"},
                                  {"10.0.0.1/33", "is not an address"},
                                  {"10.0.0", "is not an address"},
                                  {"a-b", "is not an address"},
                                  {"10.0.0.1 - 10.0.0.2", "is not an address"},
                                  {"10.0.0.1-10.0.0.2-10.0.0.3", "is not an address"},
                                  {"10.0.0.0/24-10.0.1.0/24", "is not an address"}}) {
    const auto range = IpRange::Parse(text);
    ASSERT_FALSE(range) << text;
    EXPECT_EQ(range.error().code, ErrorCode::kInvalid) << text;
    EXPECT_NE(range.error().message.find("'" + std::string(text) + "' " + why), std::string::npos)
        << range.error().message;
    EXPECT_FALSE(range.error().hint.empty());
  }
}

}  // namespace
}  // namespace railhead::testing
