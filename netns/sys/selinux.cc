#include "netns/sys/selinux.h"

#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr const char* kAttribute = "security.selinux";
// Longer ones have so many categories that containers cannot have them all.
constexpr std::size_t kLongestLabel = 512;

// nullopt: the file has none, or it cannot be read.
std::optional<std::string> LabelOf(const std::string& path) {
  std::array<char, kLongestLabel> text{};
  const ssize_t size = ::lgetxattr(path.c_str(), kAttribute, text.data(), text.size() - 1);
  if (size <= 0) return std::nullopt;
  return std::string(text.data());  // the kernel ends it with a NUL
}

// "user:role:type:level"
bool IsForContainers(const std::string& label) {
  const auto parts = Split(label, ':');
  return parts.size() >= 3 && parts[2] == "container_file_t";
}

}  // namespace

bool HasSelinux(const Root& root) {
  return Exists(root.Path("/sys/fs/selinux/enforce"));
}

Result<void> LabelForContainers(const Root& root, const std::string& path) {
  if (!HasSelinux(root)) return {};
  const auto label = LabelOf(path);
  if (label && IsForContainers(*label)) return {};
  if (::lsetxattr(path.c_str(), kAttribute, kContainerFileLabel, std::strlen(kContainerFileLabel) + 1, 0) ==
      0)
    return {};
  // The file system has no labels; the policy has no such type, so containers are not confined by it.
  if (errno == ENOTSUP || errno == EINVAL) return {};
  return FailSys(errno, "setting the SELinux label of " + path + " to " + kContainerFileLabel);
}

std::string LabelAgainstContainers(const Root& root, const std::string& path) {
  if (!HasSelinux(root)) return {};
  const auto label = LabelOf(path);
  return !label || IsForContainers(*label) ? "" : *label;
}

}  // namespace railhead
