// What fabric.json's object "provision" may say.
#include <gtest/gtest.h>

#include "deviceplugin/services/provision/provision_settings.h"

namespace railhead::testing {
namespace {

Result<std::optional<provision::ProvisionSettings>> Read(const std::string& provision) {
  const std::string text =
      R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0"}, {"name": "rail1", "pf": "pf1"}])" +
      (provision.empty() ? std::string() : R"(, "provision": )" + provision) + "}";
  auto fabric = RH_TRY(ParseFabric(text, "fabric.json"));
  return provision::ReadProvisionSettings(fabric, "fabric.json");
}

TEST(ProvisionSettings, WithoutTheObjectThereAreNone) {
  EXPECT_EQ(Read("").value(), std::nullopt);
  EXPECT_EQ(Read("null").value(), std::nullopt);
}

TEST(ProvisionSettings, AnEmptyObjectChangesNothingAtStart) {
  const auto settings = Read("{}").value();
  ASSERT_TRUE(settings);
  EXPECT_TRUE(settings->at_start);
  EXPECT_EQ(settings->Of("rail0"), provision::PfSettings{});
}

TEST(ProvisionSettings, ARailOverridesWhatItNames) {
  const auto settings =
      Read(R"({"vfs": 8, "mtu": 9000, "mac": "derived", "driver": "mlx5_core", "atStart": false,
                                 "rails": {"rail1": {"vfs": "max", "driver": null}}})")
          .value();
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->at_start);
  EXPECT_EQ(settings->Of("rail0"),
            (provision::PfSettings{
                .vfs = 8, .mtu = 9000, .mac = provision::MacPolicy::kDerived, .driver = "mlx5_core"}));
  EXPECT_EQ(settings->Of("rail1"),
            (provision::PfSettings{.all_vfs = true, .mtu = 9000, .mac = provision::MacPolicy::kDerived}));
}

TEST(ProvisionSettings, ARailsNumberTakesTheWordsPlace) {
  const auto settings = Read(R"({"vfs": "max", "rails": {"rail0": {"vfs": 0, "mac": "keep"}}})").value();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->Of("rail0"), provision::PfSettings{.vfs = 0});
  EXPECT_EQ(settings->Of("rail1"), provision::PfSettings{.all_vfs = true});
}

TEST(ProvisionSettings, WhatIsWrongIsNamedByItsPointer) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"vf": 8})", "/provision/vf"},
      {R"({"vfs": -1})", "/provision/vfs"},
      {R"({"vfs": 1.5})", "/provision/vfs"},
      {R"({"vfs": 65536})", "/provision/vfs"},
      {R"({"vfs": "all"})", "/provision/vfs"},
      {R"({"mtu": 67})", "/provision/mtu"},
      {R"({"mac": "random"})", "/provision/mac"},
      {R"({"driver": ""})", "/provision/driver"},
      {R"({"driver": "../x"})", "/provision/driver"},
      {R"({"driver": 5})", "/provision/driver"},
      {R"({"atStart": "yes"})", "/provision/atStart"},
      {R"({"rails": {"rail2": {"vfs": 1}}})", "/provision/rails/rail2"},
      {R"({"rails": {"rail1": {"atStart": true}}})", "/provision/rails/rail1/atStart"},
      {R"({"rails": []})", "/provision/rails"},
      {R"([])", "/provision"},
      {R"(false)", "/provision"},
  };
  for (const auto& [text, pointer] : cases) {
    const auto settings = Read(text);
    ASSERT_FALSE(settings) << text;
    EXPECT_EQ(settings.error().code, ErrorCode::kInvalid) << text;
    EXPECT_NE(settings.error().message.find(std::string("fabric.json: ") + pointer + ":"), std::string::npos)
        << text << ": " << settings.error().message;
  }
}

}  // namespace
}  // namespace railhead::testing
