// The second parser is one: what it says of a node's distances is what NCCL's tree means.
#include "tests/support/nccl/nccl_model.h"

#include <gtest/gtest.h>

namespace railhead::testing {
namespace {

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
