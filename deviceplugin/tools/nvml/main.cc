// railhead-nvml UUID: where NVIDIA's library says that a GPU is, or the GPU of a MIG slice.
//
// railheadd runs it (deviceplugin/node/topology/find_by_nvml.h). It is dynamic, since a static program can
// load no library. It needs the C library only, in the version of any host that the driver runs on. NVIDIA's
// library takes tens of megabytes, which end with this process.
// Source: nvml.h of the CUDA toolkit; only functions whose ABI has been stable since R440.
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "netns/base/exit_status.h"

namespace railhead::nvml {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr const char* kHelp =
    "railhead-nvml asks NVIDIA's library where a GPU is. railheadd runs it.\n"
    "\n"
    "Usage: railhead-nvml UUID\n"
    "\n"
    "  UUID       GPU-... or MIG-...; the PCI address of the GPU is printed\n"
    "  --help     Print this and exit\n"
    "  --version  Print the version and exit\n"
    "\n"
    "Exit status: 0 found; 1 not found; 2 wrong command line.\n";

using Device = void*;        // nvmlDevice_t
constexpr int kSuccess = 0;  // NVML_SUCCESS

// nvmlPciInfo_t, as nvmlDeviceGetPciInfo_v3 fills it.
struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pci_device_id;
  unsigned int pci_subsystem_id;
  std::array<char, 32> bus_id;
};

template <typename Function>
Function Symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

// False: an unknown device, or another library.
bool FindIn(void* library, const char* uuid, PciInfo* info) {
  const auto by_uuid = Symbol<int (*)(const char*, Device*)>(library, "nvmlDeviceGetHandleByUUID");
  const auto pci_info = Symbol<int (*)(Device, PciInfo*)>(library, "nvmlDeviceGetPciInfo_v3");
  Device device = nullptr;
  if (by_uuid == nullptr || pci_info == nullptr || by_uuid(uuid, &device) != kSuccess) return false;
  if (std::strncmp(uuid, "MIG-", 4) == 0) {
    // A slice has no place of its own.
    const auto parent =
        Symbol<int (*)(Device, Device*)>(library, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    if (parent == nullptr || parent(device, &device) != kSuccess) return false;
  }
  return pci_info(device, info) == kSuccess && info->bus <= 0xff && info->device <= 0x1f;
}

int Fail(const char* why, const char* what) {
  (void)std::fprintf(stderr, "railhead-nvml: %s: %s\n", why, what);
  return kExitFailed;
}

int Find(const char* uuid) {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Fail("NVIDIA's library is not there", ::dlerror());
  const auto init = Symbol<int (*)()>(library, "nvmlInit_v2");
  const auto shutdown = Symbol<int (*)()>(library, "nvmlShutdown");
  if (init == nullptr || shutdown == nullptr || init() != kSuccess)
    return Fail("NVIDIA's library cannot be used", kLibrary);
  PciInfo info{};
  const bool found = FindIn(library, uuid, &info);
  (void)shutdown();
  if (!found) return Fail("no such device", uuid);
  (void)std::printf("%04x:%02x:%02x.0\n", info.domain, info.bus, info.device);
  return std::fflush(stdout) == 0 ? kExitDone : kExitFailed;
}

int Run(int argc, char** argv) {
  const char* const word = argc == 2 ? argv[1] : "";
  if (std::strcmp(word, "--help") == 0 || std::strcmp(word, "-h") == 0)
    return std::fputs(kHelp, stdout) < 0 ? kExitFailed : kExitDone;
  if (std::strcmp(word, "--version") == 0)
    return std::puts("railhead-nvml " RAILHEAD_VERSION) < 0 ? kExitFailed : kExitDone;
  if (*word != '\0' && *word != '-') return Find(word);
  (void)std::fputs("railhead-nvml: one UUID is needed; see railhead-nvml --help\n", stderr);
  return kExitUsage;
}

}  // namespace
}  // namespace railhead::nvml

int main(int argc, char** argv) {
  return railhead::nvml::Run(argc, argv);
}
