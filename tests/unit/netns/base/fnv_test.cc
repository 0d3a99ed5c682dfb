// FNV-1a against its published test vectors.

#include "netns/base/fnv.h"

#include <gtest/gtest.h>

namespace railhead::testing {
namespace {

struct Vector {
  std::string_view text;
  std::uint32_t of32;
  std::uint64_t of64;
};

TEST(HashTest, PublishedVectors) {
  for (const Vector& vector :
       {Vector{"", 0x811c9dc5U, 0xcbf29ce484222325U}, Vector{"a", 0xe40c292cU, 0xaf63dc4c8601ec8cU},
        Vector{"foobar", 0xbf9cf968U, 0x85944171f73967e8U},
        Vector{"chongo was here!\n", 0xd49930d5U, 0x46810940eff5f915U},
        Vector{{"\xff\x00\x00\x01", 4}, 0xc48fb86dU, 0x6961196491cc682dU}}) {
    EXPECT_EQ(Fnv1a32(vector.text), vector.of32) << vector.text;
    EXPECT_EQ(Fnv1a64(vector.text), vector.of64) << vector.text;
  }
}

}  // namespace
}  // namespace railhead::testing
