// kubelet's device checkpoint.
#include <gtest/gtest.h>

#include <filesystem>

#include "cni/state/allocation.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Ids = std::vector<std::string>;

constexpr const char* kPath = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";

// As Kubernetes 1.20 and later write it.
TEST(CheckpointTest, ListsByNumaNode) {
  const auto all = ParseCheckpoint(
      R"({"Data":{"PodDeviceEntries":[
          {"PodUID":"uid-1","ContainerName":"main","ResourceName":"railhead.io/roce",
           "DeviceIDs":{"0":["0000:43:10.0","0000:43:10.1"],"1":["0000:83:10.0"]},"AllocResp":"Eh4K"},
          {"PodUID":"uid-2","ContainerName":"side","ResourceName":"nvidia.com/gpu",
           "DeviceIDs":{"-1":["GPU-1"]},"AllocResp":""}],
         "RegisteredDevices":{"railhead.io/roce":["0000:43:10.0"]}},"Checksum":1234567890})",
      "test");
  ASSERT_TRUE(all) << Describe(all.error());
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].pod_uid, "uid-1");
  EXPECT_EQ((*all)[0].container, "main");
  EXPECT_EQ((*all)[0].resource, "railhead.io/roce");
  EXPECT_EQ((*all)[0].ids, (Ids{"0000:43:10.0", "0000:43:10.1", "0000:83:10.0"}));
  EXPECT_EQ((*all)[1].ids, Ids{"GPU-1"});
}

TEST(CheckpointTest, ListOfOlderKubelets) {
  const auto all = ParseCheckpoint(R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c",
      "ResourceName":"r","DeviceIDs":["a","b"],"AllocResp":""}],"RegisteredDevices":null},"Checksum":1})",
                                   "test");
  ASSERT_TRUE(all) << Describe(all.error());
  EXPECT_EQ(all->at(0).ids, (Ids{"a", "b"}));
}

TEST(CheckpointTest, WhatGoWritesForNothing) {
  for (const char* text : {R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":null},"Checksum":0})",
                           R"({"Data":{"PodDeviceEntries":[]}})", R"({"Data":{}})"}) {
    const auto all = ParseCheckpoint(text, "test");
    ASSERT_TRUE(all) << text << ": " << Describe(all.error());
    EXPECT_TRUE(all->empty());
  }
  const auto without_ids = ParseCheckpoint(R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c",
      "ResourceName":"r","DeviceIDs":null}]}})",
                                           "test");
  ASSERT_TRUE(without_ids) << Describe(without_ids.error());
  EXPECT_TRUE(without_ids->at(0).ids.empty());
}

TEST(CheckpointTest, DamagedOnesNameFileAndPlace) {
  const auto error = [](const std::string& text) {
    const auto all = ParseCheckpoint(text, "the-file");
    return all ? std::string("accepted") : all.error().message;
  };
  EXPECT_NE(error("").find("the-file"), std::string::npos);
  EXPECT_NE(error("{").find("the-file"), std::string::npos);
  EXPECT_NE(error(R"({"Checksum":1})").find("/Data: is missing"), std::string::npos)
      << error(R"({"Checksum":1})");
  const std::string entry =
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r",)";
  EXPECT_NE(error(entry + R"("DeviceIDs":7}]}})").find("/Data/PodDeviceEntries/0/DeviceIDs"),
            std::string::npos)
      << error(entry + R"("DeviceIDs":7}]}})");
  EXPECT_NE(error(entry + R"("DeviceIDs":{"0":"a"}}]}})").find("DeviceIDs"), std::string::npos);
  EXPECT_NE(error(entry + R"("DeviceIDs":{"0":[1]}}]}})").find("DeviceIDs"), std::string::npos);
  EXPECT_NE(error(R"({"Data":{"PodDeviceEntries":[{"ContainerName":"c"}]}})").find("PodUID"),
            std::string::npos);
  EXPECT_NE(error(R"({"Data":{"PodDeviceEntries":{}}})").find("PodDeviceEntries"), std::string::npos);
}

TEST(CheckpointTest, FileOfANode) {
  const TempRoot temp;
  const auto none = ReadCheckpoint(temp.root());
  ASSERT_TRUE(none) << "no kubelet, or no device given yet";
  EXPECT_TRUE(none->empty());
  temp.Write(kPath, R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r",
      "DeviceIDs":{"0":["a"]}}]}})");
  EXPECT_EQ(ReadCheckpoint(temp.root())->size(), 1U);
  temp.Write(kPath, "{");
  const auto damaged = ReadCheckpoint(temp.root());
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find(kPath), std::string::npos) << damaged.error().message;
}

// A node with thousands of pods: larger than what a network configuration may be.
TEST(CheckpointTest, LargeOnes) {
  std::string text = R"({"Data":{"PodDeviceEntries":[)";
  constexpr int kPods = 4000;
  for (int i = 0; i < kPods; ++i) {
    text += (i > 0 ? "," : "") + std::string(R"({"PodUID":"uid-)") + std::to_string(i) +
            R"(","ContainerName":"c","ResourceName":"railhead.io/roce","DeviceIDs":{"0":["0000:43:10.0"]},
            "AllocResp":")" +
            std::string(200, 'A') + R"("})";
  }
  text += "]}}";
  ASSERT_GT(text.size(), std::size_t{1} << 20);
  const auto all = ParseCheckpoint(text, "test");
  ASSERT_TRUE(all) << Describe(all.error());
  EXPECT_EQ(all->size(), static_cast<std::size_t>(kPods));
}

// Only other pods in kubelet's directory prove that this one is gone.
TEST(KubeletForgotTest, OnlyWhereKubeletHasOtherPods) {
  for (const bool there : {false, true}) {
    for (const bool other : {false, true}) {
      for (const bool own : {false, true}) {
        const TempRoot temp;
        if (!there && (other || own)) continue;
        if (there) std::filesystem::create_directories(temp.directory() + "/var/lib/kubelet/pods");
        if (other) temp.Write("/var/lib/kubelet/pods/uid-2/etc-hosts", "");
        if (own) temp.Write("/var/lib/kubelet/pods/uid-1/etc-hosts", "");
        EXPECT_EQ(KubeletForgot(temp.root(), "uid-1"), other && !own) << there << other << own;
        for (const char* none : {"", ".", "..", "../x", "a/b"})
          EXPECT_FALSE(KubeletForgot(temp.root(), none));
      }
    }
  }
}

}  // namespace
}  // namespace railhead::testing
