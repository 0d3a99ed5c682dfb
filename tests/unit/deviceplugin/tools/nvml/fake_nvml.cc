// The five functions of libnvidia-ml.so.1 that are used, for one GPU with one MIG slice.
#include <cstring>

#define NVML extern "C" __attribute__((visibility("default")))

namespace {
constexpr int kNotFound = 6;
constexpr int kNotSupported = 3;
int initialised = 0;
int gpu = 0;
int slice = 0;
}  // namespace

// nvmlPciInfo_t of nvml.h.
struct PciInfo {
  char bus_id_legacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pci_device_id;
  unsigned int pci_subsystem_id;
  char bus_id[32];
};

NVML int nvmlInit_v2() {
  ++initialised;
  return 0;
}

NVML int nvmlShutdown() {
  --initialised;
  return 0;
}

NVML int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (initialised != 1) return kNotFound;
  if (std::strcmp(uuid, "GPU-11111111-2222-3333-4444-555555555555") == 0) {
    *device = &gpu;
  } else if (std::strcmp(uuid, "MIG-66666666-7777-8888-9999-000000000000") == 0) {
    *device = &slice;
  } else {
    return kNotFound;
  }
  return 0;
}

NVML int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* device, void** parent) {
  if (device != &slice) return kNotFound;
  *parent = &gpu;
  return 0;
}

NVML int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  if (device != &gpu) return kNotSupported;
  std::memset(info, 0, sizeof *info);
  info->domain = 2;
  info->bus = 0x9d;
  info->device = 1;
  return 0;
}
