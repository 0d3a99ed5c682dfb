// railhead-nvml with a stand-in for NVIDIA's library.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "deviceplugin/node/topology/find_by_nvml.h"
#include "netns/base/exit_status.h"
#include "tests/support/process.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr const char* kGpu = "GPU-11111111-2222-3333-4444-555555555555";
constexpr const char* kSlice = "MIG-66666666-7777-8888-9999-000000000000";

std::string DirectoryOfLibrary() {
  return std::filesystem::path(FAKE_NVML).parent_path();
}

ProcessOutput Nvml(const std::vector<std::string>& arguments,
                   const std::string& libraries = DirectoryOfLibrary()) {
  std::vector<std::string> words{RAILHEAD_NVML};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunProcess(words, {{"LD_LIBRARY_PATH", libraries}}, "");
}

TEST(NvmlTest, FindsAGpuByItsUuid) {
  const auto output = Nvml({kGpu});
  EXPECT_EQ(output.status, kExitDone) << output.err;
  EXPECT_EQ(output.out, "0002:9d:01.0\n");
}

TEST(NvmlTest, ASliceIsWhereItsGpuIs) {
  EXPECT_EQ(Nvml({kSlice}).out, "0002:9d:01.0\n");
}

TEST(NvmlTest, AnUnknownGpuOrLibraryFails) {
  const auto unknown = Nvml({"GPU-00000000-0000-0000-0000-000000000000"});
  EXPECT_EQ(unknown.status, kExitFailed);
  EXPECT_EQ(unknown.out, "");
  EXPECT_NE(unknown.err.find("no such device: GPU-0000"), std::string::npos) << unknown.err;
  const TempRoot root;
  root.Write("/libnvidia-ml.so.1", "no library");
  const auto broken = Nvml({kGpu}, root.directory());
  EXPECT_EQ(broken.status, kExitFailed);
  EXPECT_NE(broken.err.find("NVIDIA's library is not there"), std::string::npos) << broken.err;
}

TEST(NvmlTest, ItsCommandLine) {
  EXPECT_EQ(Nvml({"--help"}).status, kExitDone);
  EXPECT_NE(Nvml({"--help"}).out.find("Usage: railhead-nvml UUID"), std::string::npos);
  EXPECT_TRUE(Nvml({"--version"}).out.starts_with("railhead-nvml ")) << Nvml({"--version"}).out;
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{}, {""}, {"--other"}, {kGpu, kSlice}}) {
    const auto output = Nvml(wrong);
    EXPECT_EQ(output.status, kExitUsage);
    EXPECT_EQ(output.out, "");
  }
}

TEST(NvmlTest, RailheaddAsksIt) {
  ASSERT_EQ(::setenv("LD_LIBRARY_PATH", DirectoryOfLibrary().c_str(), 1), 0);
  const PciAddress gpu{.domain = 2, .bus = 0x9d, .device = 1, .function = 0};
  EXPECT_EQ(topology::FindByNvml(kGpu, RAILHEAD_NVML), gpu);
  EXPECT_EQ(topology::FindByNvml(kSlice, RAILHEAD_NVML), gpu);
  EXPECT_EQ(topology::FindByNvml("GPU-00000000-0000-0000-0000-000000000000", RAILHEAD_NVML), std::nullopt);
}

}  // namespace
}  // namespace railhead::testing
