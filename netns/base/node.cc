#include "netns/base/node.h"

#include <sys/utsname.h>

#include <cerrno>

#include "netns/base/files.h"
#include "netns/base/root.h"

namespace railhead {
namespace {

Result<std::optional<std::string>> ReadTrimmed(const std::string& path) {
  auto text = RH_TRY(ReadRootFile(path));
  if (text) text->erase(text->find_last_not_of(" \t\r\n") + 1);
  return text;
}

}  // namespace

Result<std::string> NodeName(const Root& root) {
  const std::string path = root.Path("/etc/railhead/node-name");
  if (auto name = RH_TRY(ReadTrimmed(path)); name) {
    if (name->empty() || name->find_first_of(" \t\n/") != std::string::npos) {
      return Fail(ErrorCode::kInvalid, path + " does not hold one node name",
                  "write the Kubernetes node name into it, or remove it to use the host name");
    }
    return *name;
  }
  utsname names{};
  if (::uname(&names) != 0) return FailSys(errno, "reading the host name");
  return std::string(names.nodename);
}

Result<std::optional<IpAddress>> NodeAddress(const Root& root) {
  const std::string path = root.Path("/etc/railhead/node-address");
  const auto text = RH_TRY(ReadTrimmed(path));
  if (!text) return std::nullopt;
  auto address = IpAddress::Parse(*text);
  if (!address) {
    return Fail(ErrorCode::kInvalid, path + " does not hold one address",
                "write the node's InternalIP into it, or remove it");
  }
  return address;
}

Result<std::string> BootId(const Root& root) {
  static constexpr const char* kPath = "/proc/sys/kernel/random/boot_id";
  for (const std::string& path : {root.Path(kPath), std::string(kPath)}) {
    if (auto id = RH_TRY(ReadAttribute(path)); id && !id->empty()) return *id;
  }
  return Fail(ErrorCode::kNotFound, std::string("no boot id in ") + kPath);
}

}  // namespace railhead
