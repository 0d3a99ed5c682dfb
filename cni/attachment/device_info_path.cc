#include "cni/attachment/device_info_path.h"

namespace railhead::attachment {
namespace {

constexpr std::string_view kVar = "/var";
constexpr std::string_view kFolder = "/var/run/k8s.cni.cncf.io/devinfo/cni/";

}  // namespace

std::string NameOfDeviceInfoFile(std::string_view path) {
  if (path.starts_with("/var/")) path.remove_prefix(kVar.size());
  const std::string_view run = kFolder.substr(kVar.size());
  if (!path.starts_with(run)) return "";
  path.remove_prefix(run.size());
  // Hidden names are those of drafts.
  const bool plain = !path.starts_with('.') && path.find('/') == std::string_view::npos &&
                     path.find('\0') == std::string_view::npos;
  return plain ? std::string(path) : "";
}

std::string RefusalOfDeviceInfoFile(const std::string& path) {
  if (!path.starts_with("/")) return "'" + path + "' is not an absolute path";
  return NameOfDeviceInfoFile(path).empty() ? "'" + path + "' is not a file in " + std::string(kFolder) : "";
}

}  // namespace railhead::attachment
