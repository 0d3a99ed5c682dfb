#include "tests/system/power/write_log.h"

#include <gtest/gtest.h>

namespace railhead::testing {
namespace {

constexpr std::size_t kSector = 512;

std::string Little(std::uint64_t value, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string Sector(std::string bytes) {
  bytes.resize(kSector, '\0');
  return bytes;
}

std::string Super(std::uint64_t entries) {
  return Sector(Little(0x6a736677736872ULL, 8) + Little(1, 8) + Little(entries, 8) + Little(kSector, 4));
}

std::string Entry(std::uint64_t sector, std::uint64_t sectors, std::uint64_t flags, std::uint64_t length = 0,
                  const std::string& mark = "") {
  return Sector(Little(sector, 8) + Little(sectors, 8) + Little(flags, 8) + Little(length, 8) + mark);
}

TEST(WriteLogTest, WritesFlushesAndMarks) {
  const auto writes = ParseWriteLog(Super(4) + Entry(2, 1, 0) + Sector("a") + Entry(0, 0, 1) +
                                    Entry(0, 0, 8, 3, "12") + Entry(7, 1, 2 | 16) + Sector("b"));
  ASSERT_TRUE(writes) << Describe(writes.error());
  ASSERT_EQ(writes->size(), 4U);
  EXPECT_EQ((*writes)[0].offset, 2 * kSector);
  EXPECT_EQ((*writes)[0].data, Sector("a"));
  EXPECT_TRUE((*writes)[1].flush);
  EXPECT_EQ((*writes)[2].mark, "12");
  EXPECT_TRUE((*writes)[3].fua);
}

TEST(WriteLogTest, DiscardsHaveNoData) {
  const auto writes = ParseWriteLog(Super(2) + Entry(0, 8, 4) + Entry(1, 1, 0) + Sector("x"));
  ASSERT_TRUE(writes) << Describe(writes.error());
  EXPECT_TRUE((*writes)[0].data.empty());
  EXPECT_EQ((*writes)[1].data, Sector("x"));
}

TEST(WriteLogTest, WhatIsCutOffIsRefused) {
  EXPECT_FALSE(ParseWriteLog(""));
  EXPECT_FALSE(ParseWriteLog(Sector("no log")));
  EXPECT_FALSE(ParseWriteLog(Super(1)));
  EXPECT_FALSE(ParseWriteLog(Super(1) + Entry(0, 2, 0) + Sector("half")));
}

TEST(WriteLogTest, AppliesWhatWasKept) {
  const auto writes = *ParseWriteLog(Super(2) + Entry(0, 1, 0) + Sector("a") + Entry(0, 1, 0) + Sector("b"));
  std::string disk(kSector, '\0');
  ApplyWrites(writes, 0, 2, &disk, [](std::size_t i) { return i == 0; });
  EXPECT_EQ(disk, Sector("a"));
  ApplyWrites(writes, 0, 2, &disk, [](std::size_t) { return true; });
  EXPECT_EQ(disk, Sector("b"));
}

}  // namespace
}  // namespace railhead::testing
