#include "deviceplugin/node/topology/nvml.h"

#include <dlfcn.h>

#include <array>
#include <memory>

namespace railhead {
namespace {

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

struct Unload {
  void operator()(void* library) const { ::dlclose(library); }
};

template <typename Function>
Function Symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

class Nvml {
 public:
  explicit Nvml(const std::string& library) : library_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) return;
    const auto init = Symbol<int (*)()>(library_.get(), "nvmlInit_v2");
    shutdown_ = Symbol<int (*)()>(library_.get(), "nvmlShutdown");
    ready_ = init != nullptr && shutdown_ != nullptr && init() == kSuccess;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (ready_) shutdown_();
  }

  [[nodiscard]] std::optional<PciAddress> Find(const std::string& uuid) const {
    if (!ready_) return std::nullopt;
    const auto by_uuid = Symbol<int (*)(const char*, Device*)>(library_.get(), "nvmlDeviceGetHandleByUUID");
    const auto pci_info = Symbol<int (*)(Device, PciInfo*)>(library_.get(), "nvmlDeviceGetPciInfo_v3");
    Device device = nullptr;
    if (by_uuid == nullptr || pci_info == nullptr || by_uuid(uuid.c_str(), &device) != kSuccess)
      return std::nullopt;
    if (uuid.starts_with("MIG-")) {
      // A slice has no place of its own.
      const auto parent =
          Symbol<int (*)(Device, Device*)>(library_.get(), "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
      if (parent == nullptr || parent(device, &device) != kSuccess) return std::nullopt;
    }
    PciInfo info{};
    if (pci_info(device, &info) != kSuccess || info.bus > 0xff || info.device > 0x1f) return std::nullopt;
    return PciAddress{info.domain, static_cast<std::uint8_t>(info.bus),
                      static_cast<std::uint8_t>(info.device), 0};
  }

 private:
  std::unique_ptr<void, Unload> library_;
  int (*shutdown_)() = nullptr;
  bool ready_ = false;
};

}  // namespace

std::optional<PciAddress> FindByNvml(const std::string& uuid, const std::string& library) {
  return Nvml(library).Find(uuid);
}

}  // namespace railhead
