#include <gtest/gtest.h>

#include "deviceplugin/node/topology/accelerator_ids.h"

namespace railhead::testing {
namespace {

constexpr PciAddress kGpu{.domain = 2, .bus = 0x9d, .device = 1, .function = 0};

TEST(NvmlTest, FindsAGpuByItsUuid) {
  EXPECT_EQ(topology::FindByNvml("GPU-11111111-2222-3333-4444-555555555555", FAKE_NVML), kGpu);
  // Loaded and let go each time: the stand-in answers only when it is initialised once.
  EXPECT_EQ(topology::FindByNvml("GPU-11111111-2222-3333-4444-555555555555", FAKE_NVML), kGpu);
}

TEST(NvmlTest, ASliceIsWhereItsGpuIs) {
  EXPECT_EQ(topology::FindByNvml("MIG-66666666-7777-8888-9999-000000000000", FAKE_NVML), kGpu);
}

TEST(NvmlTest, AbsenceIsNoAddress) {
  EXPECT_EQ(topology::FindByNvml("GPU-00000000-0000-0000-0000-000000000000", FAKE_NVML), std::nullopt);
  EXPECT_EQ(topology::FindByNvml("GPU-11111111-2222-3333-4444-555555555555", "libno-such-library.so.1"),
            std::nullopt);
  // A library without these functions.
  EXPECT_EQ(topology::FindByNvml("GPU-11111111-2222-3333-4444-555555555555", "libc.so.6"), std::nullopt);
}

}  // namespace
}  // namespace railhead::testing
