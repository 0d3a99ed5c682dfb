// The records of who had which device.
#include "cni/state/tenants.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/rapidcheck.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr const char* kDevice = "0000:43:10.1";

TEST(TenantsTest, ARecordIsReadAsItWasWritten) {
  EXPECT_TRUE(rc::check([] {
    const auto text = rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    const Tenant tenant{*text, *text, *text};
    const TempRoot temp;
    RC_ASSERT(WriteTenant(temp.root(), kDevice, tenant).has_value());
    RC_ASSERT(ReadTenant(temp.root(), kDevice)->value() == tenant);
    RC_ASSERT(*ListTenantDevices(temp.root()) == std::vector<std::string>{kDevice});
    RC_ASSERT(RemoveTenant(temp.root(), kDevice).has_value());
    RC_ASSERT(!ReadTenant(temp.root(), kDevice)->has_value());
  }));
}

TEST(TenantsTest, WhatMayBeLeftIsNotForgottenAndHasARecord) {
  const TempRoot temp;
  ASSERT_TRUE(MarkLeftover(temp.root(), kDevice, "an interface"));
  EXPECT_FALSE(ReadTenant(temp.root(), kDevice)->has_value()) << "nobody had it";
  ASSERT_TRUE(WriteTenant(temp.root(), kDevice, {"red", "red/train", ""}));
  ASSERT_TRUE(MarkLeftover(temp.root(), kDevice, "an interface"));
  ASSERT_TRUE(MarkLeftover(temp.root(), kDevice, "another one"));
  EXPECT_EQ(**ReadTenant(temp.root(), kDevice), (Tenant{"red", "red/train", "an interface"}));
}

TEST(TenantsTest, ARecordThatCannotBeReadIsSomebodyElses) {
  for (const char* text : {"", "{", "[]", R"({"namespace":"red"})", R"({"namespace":1,"pod":"red/train"})"}) {
    const TempRoot temp;
    WriteFileAt(temp.directory() + "/run/railhead/tenants/0000:43:10.1.json", text);
    const auto tenant = ReadTenant(temp.root(), kDevice);
    ASSERT_TRUE(tenant && *tenant) << text;
    EXPECT_NE((*tenant)->leftover, "") << text;
  }
}

// It could say that the next pod's namespace had the device.
TEST(TenantsTest, ARecordThatOthersCanChangeIsSomebodyElses) {
  const TempRoot temp;
  ASSERT_TRUE(WriteTenant(temp.root(), kDevice, {"red", "red/train", ""}));
  const std::string path = temp.directory() + "/run/railhead/tenants/0000:43:10.1.json";
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  const auto tenant = ReadTenant(temp.root(), kDevice);
  ASSERT_TRUE(tenant && *tenant);
  EXPECT_EQ((*tenant)->pod_namespace, "");
  EXPECT_NE((*tenant)->leftover.find("may be written to by others"), std::string::npos)
      << (*tenant)->leftover;
  EXPECT_TRUE(MarkLeftover(temp.root(), kDevice, "an interface")) << "DEL goes on";
}

}  // namespace
}  // namespace railhead::testing
