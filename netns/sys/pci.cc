#include "netns/sys/pci.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::string_view kDevices = "/sys/bus/pci/devices";

std::string DevicePath(const Root& root, const PciAddress& address) {
  return root.Path(kDevices) + "/" + address.ToString();
}

std::string_view BaseName(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// "0x15b3" as a number of at most `bits` bits; nullopt when the attribute is not there.
Result<std::optional<std::uint32_t>> ReadHexAttribute(const std::string& path, int bits) {
  const auto text = RH_TRY(ReadAttribute(path));
  if (!text) return std::nullopt;
  std::string_view digits = *text;
  if (digits.substr(0, 2) == "0x") digits.remove_prefix(2);
  const auto value = ParseHex(digits);
  if (!value || (*value >> bits) != 0) {
    return Fail(ErrorCode::kConflict, path + " holds '" + *text + "', not a number of " +
                                          std::to_string(bits) + " bits in hexadecimal");
  }
  return static_cast<std::uint32_t>(*value);
}

Result<std::optional<int>> ReadIntAttribute(const std::string& path) {
  const auto text = RH_TRY(ReadAttribute(path));
  if (!text) return std::nullopt;
  const auto value = ParseInt(*text);
  if (!value || *value < INT_MIN || *value > INT_MAX) {
    return Fail(ErrorCode::kConflict, path + " holds '" + *text + "', not a number");
  }
  return static_cast<int>(*value);
}

// The PCI address at the end of a symbolic link; nullopt without a link, or when its target is not on PCI.
Result<std::optional<PciAddress>> ReadPciLink(const std::string& path) {
  const auto target = RH_TRY(ReadLink(path));
  if (!target) return std::nullopt;
  return PciAddress::Parse(BaseName(*target));
}

std::string RealPath(const Root& root, const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  if (!real) return {};
  std::string result = real.get();
  if (root.prefix().empty()) return result;
  // The prefix itself may lead through links (/tmp on some machines).
  const std::unique_ptr<char, void (*)(void*)> prefix(::realpath(root.prefix().c_str(), nullptr), ::free);
  if (prefix && result.rfind(prefix.get(), 0) == 0) result.erase(0, std::string_view(prefix.get()).size());
  return result;
}

// The directory behind /sys/bus/pci/devices/ADDRESS. The entry is a relative link that leads there in one
// step (bus_add_device in drivers/base/bus.c), so the path follows from its text. With realpath(3) the kernel
// would check each component.
Result<std::string> DirectoryOf(const Root& root, const std::string& path) {
  const auto target = RH_TRY(ReadLink(path));
  std::string_view rest;
  if (target) rest = *target;
  std::string_view directory = kDevices;
  while (rest.substr(0, 3) == "../" && !directory.empty()) {
    rest.remove_prefix(3);
    directory.remove_suffix(BaseName(directory).size() + 1);
  }
  if (rest.empty() || rest.front() == '/' || rest.find("..") != std::string_view::npos) {
    return RealPath(root, path);
  }
  return std::string(directory) + "/" + std::string(rest);
}

// Another VF of the PF that has `first`. All VFs of a PF have one vendor, device id, class and NUMA node
// (pci_iov_add_virtfn and pci_read_vf_config_common in the kernel's drivers/pci). With hundreds of VFs these
// would be most of the reads.
Result<std::optional<PciDevice>> ReadSibling(const Root& root, const PciAddress& address,
                                             const PciDevice& first) {
  PciDevice device = first;
  device.address = address;
  device.path = RH_TRY(DirectoryOf(root, DevicePath(root, address)));
  if (device.path.empty()) return std::nullopt;
  const auto driver = RH_TRY(ReadLink(root.Path(device.path) + "/driver"));
  device.driver = driver ? std::optional(std::string(BaseName(*driver))) : std::nullopt;
  return device;
}

Result<std::vector<std::string>> NamesIn(const std::string& path) {
  auto names = RH_TRY(ListDirectory(path));
  return names ? *std::move(names) : std::vector<std::string>{};
}

// devlink's names (net/devlink/port.c): an uplink is "p0", representors are "pf0",
// "pf0vf3", "pf0sf88" and the same after a controller: "c1pf0vf3".
bool IsRepresentor(std::string_view phys_port_name) {
  return phys_port_name.substr(0, 2) == "pf" ||
         (phys_port_name.substr(0, 1) == "c" && phys_port_name.find("pf") != std::string_view::npos);
}

}  // namespace

Result<std::optional<PciDevice>> ReadPciFunction(const Root& root, const PciAddress& address) {
  // Without links on the way: following them costs as much as reading an attribute.
  const std::string directory = RH_TRY(DirectoryOf(root, DevicePath(root, address)));
  if (directory.empty()) return std::nullopt;
  const std::string path = root.Path(directory);
  const auto class_code = RH_TRY(ReadHexAttribute(path + "/class", 24));
  const auto vendor = RH_TRY(ReadHexAttribute(path + "/vendor", 16));
  const auto device_id = RH_TRY(ReadHexAttribute(path + "/device", 16));
  if (!class_code || !vendor || !device_id) return std::nullopt;
  PciDevice device;
  device.address = address;
  device.class_code = *class_code;
  device.vendor = static_cast<std::uint16_t>(*vendor);
  device.device = static_cast<std::uint16_t>(*device_id);
  if (const auto driver = RH_TRY(ReadLink(path + "/driver")); driver) device.driver = BaseName(*driver);
  const auto numa_node = RH_TRY(ReadIntAttribute(path + "/numa_node"));
  if (numa_node && *numa_node >= 0) device.numa_node = numa_node;
  device.physfn = RH_TRY(ReadPciLink(path + "/physfn"));
  device.is_vf = device.physfn.has_value();
  if (!device.is_vf) device.sriov_totalvfs = RH_TRY(ReadIntAttribute(path + "/sriov_totalvfs")).value_or(0);
  device.path = directory;
  // Attributes that went while they were read look like attributes that never were.
  if (!Exists(path + "/class")) return std::nullopt;
  return device;
}

Result<std::optional<PciDevice>> FindPciDevice(const Root& root, const PciAddress& address) {
  auto device = RH_TRY(ReadPciFunction(root, address));
  if (device && device->physfn) {
    const auto vfs = RH_TRY(VfsOf(root, *device->physfn));
    const auto found = std::ranges::find(vfs, address);
    if (found != vfs.end()) device->vf_index = static_cast<int>(found - vfs.begin());
  }
  return device;
}

Result<int> NumVfsOf(const Root& root, const PciAddress& pf) {
  return RH_TRY(ReadIntAttribute(DevicePath(root, pf) + "/sriov_numvfs")).value_or(0);
}

Result<std::vector<PciAddress>> VfsOf(const Root& root, const PciAddress& pf) {
  const std::string path = DevicePath(root, pf);
  std::vector<PciAddress> vfs;
  // The kernel numbers the links without holes (drivers/pci/iov.c, sriov_enable).
  for (int index = 0;; ++index) {
    const auto vf = RH_TRY(ReadPciLink(path + "/virtfn" + std::to_string(index)));
    if (!vf) return vfs;
    vfs.push_back(*vf);
  }
}

Result<std::vector<PciDevice>> ReadVfs(const Root& root, const PciAddress& pf,
                                       std::map<PciAddress, Error>* unreadable) {
  std::vector<PciDevice> devices;
  const auto vfs = RH_TRY(VfsOf(root, pf));
  for (std::size_t index = 0; index < vfs.size(); ++index) {
    auto device =
        devices.empty() ? ReadPciFunction(root, vfs[index]) : ReadSibling(root, vfs[index], devices.front());
    if (!device && unreadable != nullptr) {
      unreadable->emplace(vfs[index], std::move(device.error()));
      continue;
    }
    if (!RH_TRY(device)) continue;  // VFs are being removed under us
    (*device)->vf_index = static_cast<int>(index);
    devices.push_back(**std::move(device));
  }
  return devices;
}

Result<std::vector<PciDevice>> ListNetworkPfs(const Root& root) {
  std::vector<PciDevice> pfs;
  for (const std::string& name : RH_TRY(NamesIn(root.Path(kDevices)))) {
    const auto address = PciAddress::Parse(name);
    if (!address) continue;
    // Most functions do not matter here (on a big node a thousand VFs): read the two facts that decide before
    // the others.
    const std::string path = DevicePath(root, *address);
    if (RH_TRY(ReadLink(path + "/physfn"))) continue;
    const auto class_code = RH_TRY(ReadHexAttribute(path + "/class", 24));
    if (!class_code || (*class_code >> 16) != 0x02) continue;
    auto device = RH_TRY(ReadPciFunction(root, *address));
    if (device && !device->is_vf) pfs.push_back(*std::move(device));
  }
  std::ranges::sort(pfs, [](const PciDevice& a, const PciDevice& b) { return a.address < b.address; });
  return pfs;
}

Result<std::vector<PciDevice>> ListRailPfs(const Root& root) {
  std::vector<PciDevice> rails;
  for (PciDevice& pf : RH_TRY(ListNetworkPfs(root))) {
    if (pf.sriov_totalvfs > 0 || !RH_TRY(RdmaDevicesOf(root, pf.address)).empty())
      rails.push_back(std::move(pf));
  }
  return rails;
}

Result<std::vector<std::string>> NetdevsOf(const Root& root, const PciAddress& address) {
  const std::string path = DevicePath(root, address);
  auto names = RH_TRY(ListDirectory(path + "/net"));
  if (names) return *std::move(names);
  // virtio puts one more device between the function and its network device.
  for (const std::string& entry : RH_TRY(NamesIn(path))) {
    if (entry.rfind("virtio", 0) == 0) {
      return NamesIn(std::string(path).append("/").append(entry).append("/net"));
    }
  }
  return std::vector<std::string>{};
}

Result<std::vector<std::string>> OwnNetdevsOf(const Root& root, const PciAddress& address) {
  std::vector<std::pair<std::int64_t, std::string>> ports;
  for (const std::string& name : RH_TRY(NetdevsOf(root, address))) {
    const std::string netdev = DevicePath(root, address) + "/net/" + name;
    // Drivers without port names answer EOPNOTSUPP: no representor then.
    const auto port_name = ReadAttribute(netdev + "/phys_port_name");
    if (port_name && *port_name && IsRepresentor(**port_name)) continue;
    const auto port = ReadAttribute(netdev + "/dev_port");
    ports.emplace_back(port && *port ? ParseInt(**port).value_or(0) : 0, name);
  }
  std::ranges::sort(ports);
  std::vector<std::string> names;
  names.reserve(ports.size());
  for (auto& [port, name] : ports) names.push_back(std::move(name));
  return names;
}

Result<std::optional<std::string>> UplinkNetdev(const Root& root, const PciAddress& pf) {
  auto names = RH_TRY(OwnNetdevsOf(root, pf));
  if (names.empty()) return std::nullopt;
  return std::move(names.front());
}

Result<std::vector<std::string>> RdmaDevicesOf(const Root& root, const PciAddress& address) {
  return NamesIn(DevicePath(root, address) + "/infiniband");
}

Result<std::optional<PciAddress>> PciAddressOfNetdev(const Root& root, const std::string& netdev) {
  if (netdev.empty() || netdev.find('/') != std::string::npos) return std::nullopt;
  const std::string path = RealPath(root, root.Path("/sys/class/net/") + netdev + "/device");
  std::optional<PciAddress> nearest;
  for (const std::string& part : Split(path, '/')) {
    if (const auto address = PciAddress::Parse(part)) nearest = address;
  }
  return nearest;
}

Result<void> RebindDriver(const Root& root, const PciAddress& address) {
  const std::string name = address.ToString();
  const auto target = RH_TRY(ReadLink(DevicePath(root, address) + "/driver"));
  if (!target) {
    return Fail(ErrorCode::kNotFound, "rebinding " + name + ": it does not exist or no driver is bound to it",
                "bind a driver first: echo " + name + " > /sys/bus/pci/drivers/DRIVER/bind");
  }
  const std::string driver(BaseName(*target));
  RH_TRY_WRAP(WriteAttribute(root.Path("/sys/bus/pci/drivers/") + driver + "/unbind", name),
              "unbinding " + name + " from its driver");
  return BindDriver(root, address, driver);
}

Result<void> ResetFunction(const Root& root, const PciAddress& address) {
  const std::string path = DevicePath(root, address) + "/reset";
  if (!Exists(path)) {
    return Fail(ErrorCode::kUnsupported,
                "resetting " + address.ToString() + ": the kernel knows no way to reset this function");
  }
  return WithContext(WriteAttribute(path, "1"), "resetting " + address.ToString());
}

Result<void> BindDriver(const Root& root, const PciAddress& address, const std::string& driver) {
  const std::string name = address.ToString();
  const std::string path = root.Path("/sys/bus/pci/drivers/") + driver + "/bind";
  auto bound = WriteAttribute(path, name);
  if (bound) return {};
  Error error = Wrap(std::move(bound.error()), "binding " + name + " to its driver again");
  error.hint = "the device is left without a driver; see dmesg, then: echo " + name + " > " + path;
  return Fail(std::move(error));
}

}  // namespace railhead
