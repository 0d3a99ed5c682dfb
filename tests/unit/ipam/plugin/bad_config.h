// `ipam` objects that railhead-ipam has to refuse, and the test that it does.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {

struct BadConfig {
  const char* name;
  const char* ipam;
  const char* error;  // must be in it
};

inline std::ostream& operator<<(std::ostream& out, const BadConfig& bad) {
  return out << bad.name;
}

class BadConfigTest : public ::testing::TestWithParam<BadConfig> {
 protected:
  // With code 7 and that error, and nothing is made.
  static void ExpectRefused() {
    const ScratchRoot scratch;
    const nlohmann::json config{
        {"cniVersion", "1.0.0"}, {"name", "net"}, {"ipam", nlohmann::json::parse(GetParam().ipam)}};
    const std::string error = RunIpam(scratch.path(), {"ADD", "a", config.dump()}).Error();
    EXPECT_EQ(error.substr(0, 3), "7: ") << error;
    EXPECT_NE(error.find(GetParam().error), std::string::npos) << error;
    EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << "something was made";
  }
};

}  // namespace railhead::testing
