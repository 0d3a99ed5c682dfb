// What a program in a container does with a VF of an Intel 82576 that it got by VFIO. It asks the PF for its
// MAC address, and sends.
//
// Usage: drive-igbvf BDF CONTROL GROUP. It prints the MAC address that the PF answers. From this address it
// broadcasts one frame (EtherType 0x88b5, for experiments) and prints "sent". Then it holds the device until
// its standard input ends.
//
// Exit status: 0; 1, with the reason, if the device cannot be used so; 2 for a wrong command line.
// Source: Intel 82576 datasheet, 7.8.3 (mailbox), 7.2.2 (transmit descriptors); the kernel's igbvf driver.
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "netns/base/unique_fd.h"

namespace railhead::testing {
namespace {

using Mac = std::array<std::uint8_t, 6>;

[[noreturn]] void GiveUp(const std::string& what) {
  (void)std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

// A PCI function that a program drives by VFIO: its registers, and memory that the function may read and
// write.
//
// Ownership: group, device and mappings end with it. Threads: one. Errors end the process: this program has
// no other way to show what a container can do. Source: Documentation/driver-api/vfio.rst,
// include/uapi/linux/vfio.h.
class VfioDevice {
 public:
  static constexpr std::uint64_t kMemoryAt = 0x100000;  // where the device sees memory()
  static constexpr std::size_t kMemorySize = 0x4000;

  // `control` and `group`: the device nodes that the container got. `bdf`: which of the group's functions.
  VfioDevice(const std::string& control, const std::string& group, const std::string& bdf);
  ~VfioDevice();
  VfioDevice(const VfioDevice&) = delete;
  VfioDevice& operator=(const VfioDevice&) = delete;

  // A register of BAR 0, 32 bits.
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

UniqueFd Open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) GiveUp("opening " + path);
  return fd;
}

VfioDevice::VfioDevice(const std::string& control, const std::string& group, const std::string& bdf)
    : container_(Open(control)), group_(Open(group)) {
  if (::ioctl(container_.get(), VFIO_GET_API_VERSION) != VFIO_API_VERSION)
    GiveUp("asking for VFIO's version");
  vfio_group_status status{};
  status.argsz = sizeof status;
  if (::ioctl(group_.get(), VFIO_GROUP_GET_STATUS, &status) != 0) GiveUp("asking for the state of " + group);
  errno = EBUSY;  // what the next ioctl would report
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) GiveUp(group + " has functions of the host, too");
  const int container = container_.get();
  if (::ioctl(group_.get(), VFIO_GROUP_SET_CONTAINER, &container) != 0) GiveUp("using " + group);
  if (::ioctl(container_.get(), VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) != 0) GiveUp("using the IOMMU");
  device_ = UniqueFd(::ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, bdf.c_str()));
  if (!device_.valid()) GiveUp("using " + bdf);
  MapRegisters();
  MapMemory();
  LetItMaster();
}

VfioDevice::~VfioDevice() {
  ::munmap(const_cast<std::uint32_t*>(registers_), registers_size_);
  ::munmap(const_cast<std::uint8_t*>(memory_), kMemorySize);
}

void VfioDevice::MapRegisters() {
  vfio_region_info region{};
  region.argsz = sizeof region;
  region.index = VFIO_PCI_BAR0_REGION_INDEX;
  if (::ioctl(device_.get(), VFIO_DEVICE_GET_REGION_INFO, &region) != 0) GiveUp("asking for BAR 0");
  void* const mapped = ::mmap(nullptr, region.size, PROT_READ | PROT_WRITE, MAP_SHARED, device_.get(),
                              static_cast<off_t>(region.offset));
  if (mapped == MAP_FAILED) GiveUp("mapping BAR 0");
  registers_ = static_cast<std::uint32_t*>(mapped);
  registers_size_ = region.size;
}

void VfioDevice::MapMemory() {
  void* const mapped =
      ::mmap(nullptr, kMemorySize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) GiveUp("mapping memory");
  memory_ = static_cast<std::uint8_t*>(mapped);
  vfio_iommu_type1_dma_map map{};
  map.argsz = sizeof map;
  map.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  map.vaddr = reinterpret_cast<std::uintptr_t>(mapped);
  map.iova = kMemoryAt;
  map.size = kMemorySize;
  if (::ioctl(container_.get(), VFIO_IOMMU_MAP_DMA, &map) != 0) GiveUp("mapping memory for the device");
}

void VfioDevice::LetItMaster() {
  vfio_region_info region{};
  region.argsz = sizeof region;
  region.index = VFIO_PCI_CONFIG_REGION_INDEX;
  if (::ioctl(device_.get(), VFIO_DEVICE_GET_REGION_INFO, &region) != 0)
    GiveUp("asking for configuration space");
  const auto at = static_cast<off_t>(region.offset) + PCI_COMMAND;
  std::uint16_t command = 0;
  if (::pread(device_.get(), &command, sizeof command, at) != sizeof command)
    GiveUp("reading the command register");
  command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
  if (::pwrite(device_.get(), &command, sizeof command, at) != sizeof command)
    GiveUp("writing the command register");
}

constexpr std::size_t kCtrl = 0x0;
constexpr std::uint32_t kCtrlReset = 1U << 26U;
constexpr std::size_t kMailbox = 0xc40;
constexpr std::uint32_t kRequest = 1;      // to the PF: a message is there
constexpr std::uint32_t kAcknowledge = 2;  // to the PF: its message has been read
constexpr std::uint32_t kOurBuffer = 4;    // the VF uses the buffer
constexpr std::uint32_t kPfStatus = 0x10;  // the PF has written a message
constexpr std::uint32_t kPfAcknowledge = 0x20;
constexpr std::uint32_t kResetDone = 0xc0;  // the PF is back, or was not away
constexpr std::size_t kMailboxMemory = 0x800;
constexpr std::uint32_t kMessageReset = 1;
constexpr std::uint32_t kMessageAnswered = 0x80000000U;

constexpr std::size_t kRingLow = 0x3800;
constexpr std::size_t kRingHigh = 0x3804;
constexpr std::size_t kRingSize = 0x3808;
constexpr std::size_t kRingHead = 0x3810;
constexpr std::size_t kRingTail = 0x3818;
constexpr std::size_t kRingControl = 0x3828;
constexpr std::uint32_t kRingEnable = 1U << 25U;
constexpr std::uint32_t kRingBytes = 128;  // the least: eight descriptors
constexpr std::size_t kFrameAt = 0x1000;   // in the memory, behind the ring
constexpr std::uint32_t kWholeFrame =
    0x2b300000U;  // advanced data descriptor; end of packet, checksum, report
constexpr std::size_t kFrameBytes = 64;

void Await(const char* what, const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    errno = ETIMEDOUT;
    if (std::chrono::steady_clock::now() > deadline) GiveUp(what);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

class Igbvf {
 public:
  explicit Igbvf(VfioDevice* device) : device_(*device) {}

  // After a VF's reset, the PF puts it into service and sends it its MAC address.
  Mac Reset() {
    device_.Write(kCtrl, device_.Read(kCtrl) | kCtrlReset);
    Await("waiting for the PF", [&] { return Saw(kResetDone); });
    TakeBuffer();
    device_.Write(kMailboxMemory, kMessageReset);
    device_.Write(kMailbox, kRequest);
    Await("waiting for the PF's acknowledgement", [&] { return Saw(kPfAcknowledge); });
    Await("waiting for the PF's answer", [&] { return Saw(kPfStatus); });
    TakeBuffer();
    std::array<std::uint32_t, 3> answer{};
    for (std::size_t i = 0; i < answer.size(); ++i) answer[i] = device_.Read(kMailboxMemory + 4 * i);
    device_.Write(kMailbox, kAcknowledge);
    errno = EADDRNOTAVAIL;
    if (answer[0] != (kMessageReset | kMessageAnswered)) GiveUp("the PF has no address for this VF");
    Mac mac{};
    for (std::size_t i = 0; i < mac.size(); ++i)
      mac[i] = static_cast<std::uint8_t>(answer[1 + i / 4] >> 8U * (i % 4));
    return mac;
  }

  void SendFrom(const Mac& mac) {
    std::vector<std::uint8_t> frame(kFrameBytes, 0);
    std::fill_n(frame.begin(), 6, std::uint8_t{0xff});
    std::copy(mac.begin(), mac.end(), frame.begin() + 6);
    frame[12] = 0x88;
    frame[13] = 0xb5;
    std::copy(frame.begin(), frame.end(), device_.memory() + kFrameAt);
    auto* const descriptor = reinterpret_cast<volatile std::uint32_t*>(device_.memory());
    descriptor[0] = VfioDevice::kMemoryAt + kFrameAt;
    descriptor[1] = 0;
    descriptor[2] = kWholeFrame | kFrameBytes;
    descriptor[3] = kFrameBytes << 14U;
    device_.Write(kRingControl, 0);
    device_.Write(kRingSize, kRingBytes);
    device_.Write(kRingLow, VfioDevice::kMemoryAt);
    device_.Write(kRingHigh, 0);
    device_.Write(kRingHead, 0);
    device_.Write(kRingTail, 0);
    device_.Write(kRingControl, kRingEnable);
    device_.Write(kRingTail, 1);
    Await("waiting for the frame to be sent", [&] { return (descriptor[3] & 1U) != 0; });
  }

 private:
  // These bits are gone once they have been read.
  bool Saw(std::uint32_t bits) {
    seen_ |= device_.Read(kMailbox);
    const bool saw = (seen_ & bits) != 0;
    if (saw) seen_ &= ~bits;
    return saw;
  }
  void TakeBuffer() {
    Await("waiting for the mailbox", [&] {
      device_.Write(kMailbox, kOurBuffer);
      const std::uint32_t now = device_.Read(kMailbox);
      seen_ |= now;
      return (now & kOurBuffer) != 0;
    });
  }

  VfioDevice& device_;
  std::uint32_t seen_ = 0;
};

int Main(int argc, char** argv) {
  if (argc != 4) {
    (void)std::fprintf(stderr, "usage: drive-igbvf BDF CONTROL GROUP\n");
    return 2;
  }
  VfioDevice device(argv[2], argv[3], argv[1]);
  Igbvf vf(&device);
  const Mac mac = vf.Reset();
  std::printf("%02x:%02x:%02x:%02x:%02x:%02x\n", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
  vf.SendFrom(mac);
  std::printf("sent\n");
  (void)std::fflush(stdout);
  for (char byte = 0; ::read(STDIN_FILENO, &byte, 1) > 0;) continue;
  return 0;
}

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  return railhead::testing::Main(argc, argv);
}
