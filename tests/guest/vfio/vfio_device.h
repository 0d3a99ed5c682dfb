// A PCI function in a program's hands, by VFIO: its registers, and memory that it may read and write.
//
// Ownership: group, device and mappings end with it. Threads: one. Errors end the process: a program that
// shows what a container can do has nothing to fall back on. Source: Documentation/driver-api/vfio.rst,
// include/uapi/linux/vfio.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "netns/base/unique_fd.h"

namespace railhead::testing {

[[noreturn]] void GiveUp(const std::string& what);

class VfioDevice {
 public:
  static constexpr std::uint64_t kMemoryAt = 0x100000;  // where the device sees memory()
  static constexpr std::size_t kMemorySize = 0x4000;

  // `control` and `group`: the nodes that the container was given; bdf: which of the group's functions.
  VfioDevice(const std::string& control, const std::string& group, const std::string& bdf);
  ~VfioDevice();
  VfioDevice(const VfioDevice&) = delete;
  VfioDevice& operator=(const VfioDevice&) = delete;

  // Of BAR 0, 32 bits.
  [[nodiscard]] std::uint32_t Read(std::size_t offset) const { return registers_[offset / 4]; }
  void Write(std::size_t offset, std::uint32_t value) { registers_[offset / 4] = value; }
  [[nodiscard]] volatile std::uint8_t* memory() const { return memory_; }

 private:
  void MapRegisters();
  void MapMemory();
  void LetItMaster();

  UniqueFd container_;
  UniqueFd group_;
  UniqueFd device_;
  volatile std::uint32_t* registers_ = nullptr;
  std::size_t registers_size_ = 0;
  volatile std::uint8_t* memory_ = nullptr;
};

}  // namespace railhead::testing
