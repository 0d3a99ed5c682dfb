// kubelet's device checkpoint.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "cni/state/kubelet_checkpoint.h"
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
  EXPECT_EQ((*all)[1].pod_uid, "uid-2");
  EXPECT_EQ((*all)[1].ids, Ids{}) << "no network device";
}

TEST(CheckpointTest, ListOfOlderKubelets) {
  const auto all = ParseCheckpoint(R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c",
      "ResourceName":"r","DeviceIDs":["0000:43:10.0","slot-7f"],"AllocResp":""}],"RegisteredDevices":null},"Checksum":1})",
                                   "test");
  ASSERT_TRUE(all) << Describe(all.error());
  EXPECT_EQ(all->at(0).ids, (Ids{"0000:43:10.0", "slot-7f"}));
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

TEST(CheckpointTest, KeepsIdsOfNetworkDevicesAndAllOfOnePod) {
  const Ids gpus = {"GPU-1", "GPU-1::3", "0", "", "a.b", "1.2", "mlx5_core.sf.", "0000:43:10"};
  const Ids ours = {"0000:43:10.0", "slot-7f", "mlx5_core.sf.4"};
  const auto entry = [&](const std::string& uid, bool uid_last) {
    std::string ids;
    for (const Ids& some : {gpus, ours})
      for (const std::string& id : some) ids += (ids.empty() ? "\"" : ",\"") + id + "\"";
    const std::string pod = R"("PodUID":")" + uid + R"(",)";
    return "{" + (uid_last ? "" : pod) + R"("DeviceIDs":{"0":null,"1":[)" + ids + "]}," +
           (uid_last ? pod : "") + R"("ContainerName":"c","ResourceName":"r"})";
  };
  for (const bool uid_last : {false, true}) {
    const std::string text =
        R"({"Data":{"PodDeviceEntries":[)" + entry("one", uid_last) + "," + entry("two", uid_last) + "]}}";
    for (const char* const all_of : {"", "two", "none"}) {
      const auto all = ParseCheckpoint(text, "test", all_of);
      ASSERT_TRUE(all) << Describe(all.error());
      Ids whole = gpus;
      whole.insert(whole.end(), ours.begin(), ours.end());
      ASSERT_EQ(all->size(), 2U);
      EXPECT_EQ(all->at(0).ids, ours) << all_of << uid_last;
      EXPECT_EQ(all->at(1).ids, all_of == std::string("two") ? whole : ours) << all_of << uid_last;
    }
  }
}

// The end of a long string is left out: the text after it is read as before, wherever the string ends.
TEST(CheckpointTest, LongStringsOfEveryKind) {
  const Ids units = {"A",      "\\/",    "\\\"",       "\\\\", "\\u00e9", "\\ud83d\\ude00",
                     "\u00e9", "\u20ac", "\U0001f600", "}",    "[{"};
  for (std::size_t i = 0; i < units.size(); ++i) {
    for (const std::size_t length : {1000U, 1018U, 1023U, 1024U, 1025U, 1030U, 65400U}) {
      std::string value(length, 'x');
      for (std::size_t j = 0; j < 40; ++j) value += units[j % 3 == 0 ? (i + j) % units.size() : i];
      const std::string entry = R"({"PodUID":"u","ContainerName":"c","ResourceName":"r","AllocResp":")" +
                                value + R"(",")" + value + R"(":"","DeviceIDs":[")" + value +
                                R"(","slot-1"]})";
      const auto all =
          ParseCheckpoint(R"({"Data":{"PodDeviceEntries":[)" + entry + "," + entry + "]}}", "test");
      ASSERT_TRUE(all) << units[i] << " " << length << ": " << Describe(all.error());
      ASSERT_EQ(all->size(), 2U);
      for (const ContainerDevices& one : *all) EXPECT_EQ(one.ids, Ids{"slot-1"}) << units[i] << " " << length;
    }
  }
}

// GPU-memory plugins register a device for each MiB. How much is read never depends on them.
class LargeCheckpointTest : public ::testing::Test {
 protected:
  // A sanitizer adds to each string.
#if defined(__has_feature) && __has_feature(address_sanitizer)
  static constexpr std::size_t kMostMemory = std::size_t{24} << 20;
#else
  static constexpr std::size_t kMostMemory = std::size_t{16} << 20;
#endif
  static constexpr int kDevices = 100'000;

  LargeCheckpointTest() {
    temp_.Write(kPath, "");
    file_.open(temp_.directory() + kPath);
    file_ << R"({"Data":{"PodDeviceEntries":[)";
  }
  // An entry whose lists and strings are as long as they are said to be.
  void AddEntry(const std::string& uid, int devices, std::size_t answer) {
    file_ << R"({"PodUID":")" << uid
          << R"(","ContainerName":"c","ResourceName":"a.io/gpu-memory","DeviceIDs":{"-1":)";
    AddIds(devices);
    file_ << R"(},"AllocResp":")" << std::string(answer, 'A') << R"("},)";
  }
  void AddIds(int devices) {
    for (int i = 0; i < devices; ++i)
      file_ << (i == 0 ? "[" : ",") << "\"GPU-5f3c2a10-7e1b-4c55-9d1e-0a1b2c3d4e5f-" << i << "\"";
    file_ << "]";
  }
  void End(int registered) {
    file_
        << R"({"PodUID":"own","ContainerName":"c","ResourceName":"railhead.io/roce","DeviceIDs":{"0":["0000:43:10.0"]}}],
                "RegisteredDevices":{"a.io/gpu-memory":)";
    AddIds(registered);
    file_ << R"(}},"Checksum":1})";
    file_.close();
    ASSERT_TRUE(file_);
  }
  // By a process of its own, whose peak no other test has raised.
  void ReadsWithinBounds(const std::string& all_of, std::size_t ids_of_pod) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const std::size_t before = PeakOfThisProcess();
      const auto all = ReadCheckpoint(temp_.root(), all_of);
      const std::size_t growth = PeakOfThisProcess() - before;
      std::size_t kept = 0;
      for (const ContainerDevices& one : all.value_or(std::vector<ContainerDevices>{}))
        kept += one.ids.size();
      if (!all) std::cerr << Describe(all.error()) << "\n";
      std::cerr << growth << " bytes of memory, " << kept << " ids\n";
      ::_exit(all && kept == ids_of_pod + 1 && all->back().ids == Ids{"0000:43:10.0"} && growth < kMostMemory
                  ? 0
                  : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }

  TempRoot temp_;
  std::ofstream file_;

 private:
  static std::size_t PeakOfThisProcess() {
    const std::string status = ReadFileAt("/proc/self/status");
    return std::strtoull(status.c_str() + status.find("VmHWM:") + 6, nullptr, 10) << 10U;
  }
};

// A device plugin's answer has 4 MiB at most, by gRPC's limit; base64 has a third more.
TEST_F(LargeCheckpointTest, DevicesAndAnswersOfAMemoryPlugin) {
  for (int i = 0; i < 10; ++i) AddEntry("pod-" + std::to_string(i), kDevices / 10, std::size_t{56} << 17U);
  End(kDevices);
  EXPECT_GT(std::filesystem::file_size(temp_.directory() + kPath), std::size_t{64} << 20U);
  ReadsWithinBounds("", 0);
}

TEST_F(LargeCheckpointTest, DevicesOfTheAskedPod) {
  AddEntry("pod", kDevices, 0);
  End(1);
  ReadsWithinBounds("pod", kDevices);
}

TEST_F(LargeCheckpointTest, DevicesOfOthers) {
  AddEntry("pod", 4 * kDevices, 0);
  End(1);
  ReadsWithinBounds("", 0);
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
