#include "deviceplugin/node/inventory/vdpa_devices.h"

#include <climits>
#include <string_view>
#include <utility>

#include "netns/base/files.h"

namespace railhead::inventory {
namespace {

constexpr const char* kVdpaDevices = "/sys/bus/vdpa/devices";
constexpr std::string_view kNodePrefix = "vhost-vdpa-";

// Cuts the last part off a path, and returns it.
std::string TakeBaseName(std::string* path) {
  const auto slash = path->rfind('/');
  if (slash == std::string::npos) return std::exchange(*path, {});
  std::string name = path->substr(slash + 1);
  path->resize(slash);
  return name;
}

VdpaType TypeOfDriver(const std::string& driver) {
  if (driver == "vhost_vdpa") return VdpaType::kVhost;
  return driver == "virtio_vdpa" ? VdpaType::kVirtio : VdpaType::kNone;
}

}  // namespace

Result<std::vector<VdpaDevice>> ListVdpaDevices(const Root& root) {
  std::vector<VdpaDevice> devices;
  const auto names = RH_TRY(ListDirectory(root.Path(kVdpaDevices)));
  if (!names) return devices;
  devices.reserve(names->size());
  for (const std::string& name : *names) {
    const std::string path = root.Path(kVdpaDevices) + "/" + name;
    auto target = RH_TRY(ReadLink(path));
    if (!target) continue;  // removed during the listing
    VdpaDevice device;
    device.name = name;
    (void)TakeBaseName(&*target);
    device.parent = TakeBaseName(&*target);
    if (auto driver = RH_TRY(ReadLink(path + "/driver")); driver) {
      device.type = TypeOfDriver(TakeBaseName(&*driver));
    }
    if (device.type == VdpaType::kVhost) {
      const auto entries = RH_TRY(ListDirectory(path));
      for (const std::string& entry : entries.value_or(std::vector<std::string>{})) {
        if (entry.rfind(kNodePrefix, 0) == 0) device.node = "/dev/" + entry;
      }
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

const char* NameOf(VdpaType type) {
  switch (type) {
    case VdpaType::kVhost:
      return "vhost";
    case VdpaType::kVirtio:
      return "virtio";
    case VdpaType::kNone:
      break;
  }
  return "";
}

}  // namespace railhead::inventory
