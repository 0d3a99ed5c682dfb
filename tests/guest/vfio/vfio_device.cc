#include "tests/guest/vfio/vfio_device.h"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace railhead::testing {
namespace {

UniqueFd Open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) GiveUp("opening " + path);
  return fd;
}

}  // namespace

void GiveUp(const std::string& what) {
  (void)std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

VfioDevice::VfioDevice(const std::string& control, const std::string& group, const std::string& bdf)
    : container_(Open(control)), group_(Open(group)) {
  if (::ioctl(container_.get(), VFIO_GET_API_VERSION) != VFIO_API_VERSION)
    GiveUp("asking for VFIO's version");
  vfio_group_status status{};
  status.argsz = sizeof status;
  if (::ioctl(group_.get(), VFIO_GROUP_GET_STATUS, &status) != 0) GiveUp("asking for the state of " + group);
  errno = EBUSY;  // what the ioctl that comes next would say
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

}  // namespace railhead::testing
