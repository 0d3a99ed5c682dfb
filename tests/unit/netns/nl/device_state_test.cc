// The table of device settings, and their way into the journal and back.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cni/state/journal.h"
#include "tests/support/fake_kernel/random_settings.h"

namespace railhead::testing {
namespace {

constexpr int kRounds = 300;
constexpr std::size_t kFields = 100;  // and more

JournalEntry EntryWith(const DeviceState& settings) {
  JournalEntry entry;
  entry.key = {"rails", "c1", "net1"};
  entry.boot_id = "11111111-2222-3333-4444-555555555555";
  AttachedDevice link;
  link.device = "0000:43:10.0";
  link.pod_name = "net1";
  link.before.settings = settings;
  link.rebound_for = "rings.rx";
  entry.devices.push_back(link);
  return entry;
}

TEST(DeviceFieldsTest, NamesAreUniqueAndOfTheirSetting) {
  std::set<std::string_view> names;
  std::map<DeviceSource, std::string_view> settings;
  DeviceSource last = DeviceSource::kTcx;
  for (const DeviceField& field : DeviceFields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_EQ(FindDeviceField(field.name), &field);
    EXPECT_EQ(settings.try_emplace(field.source, field.Setting()).first->second, field.Setting())
        << field.name;
    EXPECT_GE(field.source, last) << field.name << ": the table's order is that of the sources";
    last = field.source;
  }
  EXPECT_GT(names.size(), kFields);
  EXPECT_EQ(FindDeviceField("rings"), nullptr);
}

// A journal entry keeps every value that a device can report.
TEST(DeviceFieldsTest, EveryStateSurvivesTheJournal) {
  std::mt19937 random = SeededGenerator();
  std::set<std::string> empty;
  for (int round = 0; round < kRounds; ++round) {
    DeviceState state;
    for (const DeviceField& field : DeviceFields()) {
      if (random() % 4 == 0) continue;
      const std::string value = RandomValue(field, random);
      ASSERT_TRUE(IsDeviceValue(field, value)) << field.name << ": " << value;
      if (value.empty()) empty.emplace(field.name);
      state.values.emplace(field.name, value);
    }
    const JournalEntry entry = EntryWith(state);
    const std::string text = FormatJournalEntry(entry).value();
    const auto parsed = ParseJournalEntry(text, "entry");
    ASSERT_TRUE(parsed) << Describe(parsed.error());
    ASSERT_EQ(parsed->devices.at(0).before.settings, state);
    EXPECT_EQ(parsed->devices.at(0).rebound_for, "rings.rx");
    EXPECT_EQ(FormatJournalEntry(*parsed).value(), text);
  }
  EXPECT_GE(empty.size(), 5U) << "empty lists were among them";
}

// A value of another form is refused by its name, and none is taken for another one.
TEST(DeviceFieldsTest, WhatNoReaderMakesIsRefused) {
  const std::map<DeviceForm, std::vector<std::string>> wrong = {
      {DeviceForm::kU8, {"", "256", "-1", "01", "1 ", "0x1", "99999999999999999999999"}},
      {DeviceForm::kU16, {"", "65536", "a"}},
      {DeviceForm::kU32, {"", "4294967296", "+1"}},
      {DeviceForm::kU64, {"", "18446744073709551616", "1.0"}},
      {DeviceForm::kBytes, {"0", "0g", "AB", "0x12"}},
      {DeviceForm::kBits, {"00", "0000000g"}},
      {DeviceForm::kList, {",", "a,", "b,a", "a,a", "A", "a b", "\n"}}};
  int tried = 0;
  for (const DeviceField& field : DeviceFields()) {
    for (const std::string& value : wrong.at(field.form)) {
      EXPECT_FALSE(IsDeviceValue(field, value)) << field.name << ": " << value;
      DeviceState state;
      state.values.emplace(field.name, value);
      EXPECT_FALSE(FormatJournalEntry(EntryWith(state))) << field.name << ": " << value << " is not written";
      auto json = nlohmann::json::parse(FormatJournalEntry(EntryWith({})).value());
      json["devices"][0]["before"]["settings"] = std::string(field.name) + "=" + value;
      const auto parsed = ParseJournalEntry(json.dump(), "entry");
      ASSERT_FALSE(parsed) << field.name << ": " << value;
      // A space ends the setting: what follows it is refused.
      if (value.find(' ') == std::string::npos) {
        EXPECT_NE(parsed.error().message.find(field.name), std::string::npos) << parsed.error().message;
      }
      ++tried;
    }
  }
  EXPECT_GT(tried, 300);
}

// An older version reads what a newer one has written.
TEST(DeviceFieldsTest, UnknownFieldsAreKept) {
  DeviceState state;
  state.values = {{"rings.rx", "256"}, {"sundials.tx", "noon"}};
  const auto parsed = ParseJournalEntry(FormatJournalEntry(EntryWith(state)).value(), "entry");
  ASSERT_TRUE(parsed) << Describe(parsed.error());
  EXPECT_EQ(parsed->devices.at(0).before.settings, state);
}

}  // namespace
}  // namespace railhead::testing
