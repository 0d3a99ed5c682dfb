#include "netns/sys/rdma_sysfs.h"

#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::string_view kInfiniband = "/sys/class/infiniband";

std::string RdmaDevicePath(const Root& root, std::string_view ibdev) {
  return root.Path(kInfiniband) + "/" + std::string(ibdev);
}

std::string PortPath(const Root& root, std::string_view ibdev, int port) {
  return RdmaDevicePath(root, ibdev) + "/ports/" + std::to_string(port);
}

// The first entry of a directory whose name begins with `prefix`.
Result<std::optional<std::string>> FirstIn(const std::string& path, std::string_view prefix) {
  const auto names = RH_TRY(ListDirectory(path));
  if (!names) return std::nullopt;
  for (const std::string& name : *names) {
    if (name.rfind(prefix, 0) == 0) return name;
  }
  return std::nullopt;
}

// The entry of /sys/class/CLASS whose name begins with `prefix` and whose `ibdev`
// attribute names our device.
Result<std::optional<std::string>> CharDevice(const Root& root, std::string_view class_name,
                                              std::string_view prefix, std::string_view ibdev) {
  const std::string path = root.Path("/sys/class/") + std::string(class_name);
  const auto names = RH_TRY(ListDirectory(path));
  if (!names) return std::nullopt;
  for (const std::string& name : *names) {
    if (name.rfind(prefix, 0) != 0) continue;
    const auto owner = RH_TRY(ReadAttribute(std::string(path).append("/").append(name).append("/ibdev")));
    if (owner && *owner == ibdev) return name;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<std::string>> ListRdmaDevices(const Root& root) {
  auto names = RH_TRY(ListDirectory(root.Path(kInfiniband)));
  return names ? *std::move(names) : std::vector<std::string>{};
}

Result<std::optional<std::string>> UverbsOf(const Root& root, std::string_view ibdev) {
  return CharDevice(root, "infiniband_verbs", "uverbs", ibdev);
}

Result<RdmaCharDevices> CharDevicesOf(const Root& root, std::string_view ibdev) {
  RdmaCharDevices devices;
  devices.uverbs = RH_TRY(UverbsOf(root, ibdev));
  devices.umad = RH_TRY(CharDevice(root, "infiniband_mad", "umad", ibdev));
  devices.issm = RH_TRY(CharDevice(root, "infiniband_mad", "issm", ibdev));
  return devices;
}

Result<RdmaCharDevices> CharDevicesOf(const Root& root, const PciAddress& address) {
  const std::string path = root.Path("/sys/bus/pci/devices/") + address.ToString();
  RdmaCharDevices devices;
  devices.uverbs = RH_TRY(FirstIn(path + "/infiniband_verbs", "uverbs"));
  devices.umad = RH_TRY(FirstIn(path + "/infiniband_mad", "umad"));
  devices.issm = RH_TRY(FirstIn(path + "/infiniband_mad", "issm"));
  return devices;
}

Result<std::optional<PortState>> PortStateOf(const Root& root, std::string_view ibdev, int port) {
  return PortStateIn(PortPath(root, ibdev, port));
}

Result<std::optional<PortState>> PortStateIn(const std::string& port_directory) {
  const std::string path = port_directory + "/state";
  const auto text = RH_TRY(ReadAttribute(path));  // "4: ACTIVE"
  if (!text) return std::nullopt;
  const auto number = ParseInt(text->substr(0, text->find(':')));
  if (!number || *number < 0 || *number > static_cast<int>(PortState::kActiveDefer)) {
    return Fail(ErrorCode::kConflict, path + " holds '" + *text + "', no state of a port");
  }
  return static_cast<PortState>(*number);
}

Result<std::optional<LinkLayer>> LinkLayerOf(const Root& root, std::string_view ibdev, int port) {
  const auto text = RH_TRY(ReadAttribute(PortPath(root, ibdev, port) + "/link_layer"));
  if (!text) return std::nullopt;
  if (*text == "Ethernet") return LinkLayer::kEthernet;
  if (*text == "InfiniBand") return LinkLayer::kInfiniband;
  return LinkLayer::kUnknown;
}

Result<std::optional<std::string>> RxeParentOf(const Root& root, std::string_view ibdev) {
  return ReadAttribute(RdmaDevicePath(root, ibdev) + "/parent");
}

Result<std::vector<std::string>> RxeDevicesOf(const Root& root, std::string_view netdev) {
  std::vector<std::string> devices;
  for (std::string& ibdev : RH_TRY(ListRdmaDevices(root))) {
    const auto parent = RH_TRY(RxeParentOf(root, ibdev));
    if (parent && *parent == netdev) devices.push_back(std::move(ibdev));
  }
  return devices;
}

}  // namespace railhead
