#include "netns/sys/device_nodes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "netns/base/files.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

bool IsDenied(const Error& error) {
  return error.sys_errno == EACCES || error.sys_errno == EPERM;
}

// "/dev/vfio/42", and its name without an IOMMU.
Result<std::vector<std::string>> GroupNodes(const std::string& device) {
  const auto group = RH_TRY(ReadLink(device + "/iommu_group"));
  if (!group) return std::vector<std::string>{};
  const std::string number = group->substr(group->rfind('/') + 1);
  return std::vector<std::string>{"/dev/vfio/" + number, "/dev/vfio/noiommu-" + number};
}

std::string DevicePathOf(const Root& root, const std::string& address) {
  return root.Path("/sys/bus/pci/devices/") + address;
}

}  // namespace

Result<OpenNodes> FindOpenNodes(const Root& root) {
  OpenNodes open;
  const std::string proc = root.Path("/proc");
  const auto names = RH_TRY_WRAP(ListDirectory(proc), "looking for processes that use devices");
  for (const std::string& process : names.value_or(std::vector<std::string>{})) {
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string directory = std::string(proc).append("/").append(process).append("/fd");
    const auto descriptors = ListDirectory(directory);  // the process may have ended
    if (!descriptors && IsDenied(descriptors.error())) open.hidden = process;
    if (!descriptors || !*descriptors) continue;
    for (const std::string& descriptor : **descriptors) {
      const auto target = ReadLink(std::string(directory).append("/").append(descriptor));
      if (!target && IsDenied(target.error())) open.hidden = process;
      if (target && *target && (*target)->starts_with("/dev/")) open.by_path.emplace(**target, process);
    }
  }
  return open;
}

Result<std::vector<std::string>> NodesOf(const Root& root, const std::string& address) {
  const std::string path = DevicePathOf(root, address);
  std::vector<std::string> nodes = RH_TRY(GroupNodes(path));
  const auto add = [&](const char* directory, const std::string& prefix) -> Result<void> {
    const auto names = RH_TRY(ListDirectory(path + directory));
    for (const std::string& name : names.value_or(std::vector<std::string>{})) nodes.push_back(prefix + name);
    return {};
  };
  RH_TRY(add("/vfio-dev", "/dev/vfio/devices/"));
  RH_TRY(add("/uio", "/dev/"));
  RH_TRY(add("/infiniband_verbs", "/dev/infiniband/"));
  return nodes;
}

std::optional<bool> IsVfioGroupHeld(const Root& root, const std::string& address) {
  const auto nodes = GroupNodes(DevicePathOf(root, address));
  if (!nodes) return std::nullopt;
  for (const std::string& node : *nodes) {
    const UniqueFd fd(::open(root.Path(node).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid() && errno == EBUSY) return true;
    struct stat status {};
    if (fd.valid() && ::fstat(fd.get(), &status) == 0 && S_ISCHR(status.st_mode)) return false;
  }
  return std::nullopt;
}

std::string DescribeProcess(const Root& root, const std::string& pid) {
  const auto name = ReadAttribute(root.Path("/proc/") + pid + "/comm");
  return "process " + pid + (name && *name ? " (" + **name + ")" : std::string());
}

}  // namespace railhead
