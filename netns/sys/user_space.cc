#include "netns/sys/user_space.h"

#include "netns/base/files.h"

namespace railhead {
namespace {

Result<std::vector<UserSpaceNode>> VfioNodes(const std::string& device) {
  const std::string link = device + "/iommu_group";
  const auto target = RH_TRY(ReadLink(link));
  if (!target) return std::vector<UserSpaceNode>{};
  const std::string group = target->substr(target->rfind('/') + 1);
  const auto name = RH_TRY(ReadAttribute(link + "/name"));
  const bool without_iommu = name && *name == "vfio-noiommu";
  const std::string inside = "/dev/vfio/" + group;
  return std::vector<UserSpaceNode>{{kVfioControl, kVfioControl},
                                    {without_iommu ? "/dev/vfio/noiommu-" + group : inside, inside}};
}

Result<std::vector<UserSpaceNode>> UioNodes(const std::string& device) {
  const auto names = RH_TRY(ListDirectory(device + "/uio"));
  if (!names || names->empty()) return std::vector<UserSpaceNode>{};
  const std::string path = "/dev/" + names->front();
  return std::vector<UserSpaceNode>{{path, path}};
}

}  // namespace

UserSpace UserSpaceOf(std::string_view driver) {
  constexpr std::string_view kVfio = "vfio-pci";
  if (driver == "uio" || driver == "uio_pci_generic" || driver == "igb_uio") return UserSpace::kUio;
  if (driver.size() < kVfio.size()) return UserSpace::kNone;
  const std::string_view end = driver.substr(driver.size() - kVfio.size());
  return end == kVfio || end == "vfio_pci" ? UserSpace::kVfio : UserSpace::kNone;
}

Result<std::vector<UserSpaceNode>> UserSpaceNodesOf(const Root& root, const std::string& address,
                                                    UserSpace kind) {
  const std::string device = root.Path("/sys/bus/pci/devices/" + address);
  if (kind == UserSpace::kVfio) return VfioNodes(device);
  if (kind == UserSpace::kUio) return UioNodes(device);
  return std::vector<UserSpaceNode>{};
}

}  // namespace railhead
