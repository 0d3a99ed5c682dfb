#include "deviceplugin/tools/migrate/read_documents.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "ipam/store/import_state.h"
#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::migrate {
namespace {

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool IsDocument(const std::string& name) {
  return name.ends_with(".json") || name.ends_with(".yaml") || name.ends_with(".yml");
}

std::string Trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Result<void> AddFile(const std::string& path, Documents* documents) {
  const auto text = RH_TRY(ReadFile(path, kMaxDocument));
  if (!text) return Fail(ErrorCode::kNotFound, "reading " + path + ": no such file");
  return AddDocuments(*text, path, documents);
}

bool HasAddresses(const std::vector<std::string>& names) {
  return std::ranges::any_of(names,
                             [](const std::string& name) { return IpAddress::Parse(name).has_value(); });
}

Result<void> AddHeld(const std::string& directory, Documents* documents) {
  HeldAddresses held;
  held.source = directory;
  held.network = directory.substr(directory.rfind('/') + 1);
  // The networks define the subnet of an address, and a network may be in a later document.
  const std::vector<IpPrefix> any = {*IpPrefix::Parse("0.0.0.0/0"), *IpPrefix::Parse("::/0")};
  for (const auto& imported : RH_TRY(ipam::ReadHostLocal(directory, held.network, any)))
    held.addresses.push_back(imported.address);
  documents->held.push_back(std::move(held));
  return {};
}

Result<void> AddDirectory(const std::string& directory, Documents* documents) {
  const auto names = RH_TRY(ListDirectory(directory)).value_or(std::vector<std::string>{});
  if (HasAddresses(names)) return AddHeld(directory, documents);
  for (const std::string& name : names) {
    const std::string path = std::string(directory).append("/").append(name);
    if (IsDirectory(path)) {
      const auto inner = RH_TRY(ListDirectory(path)).value_or(std::vector<std::string>{});
      if (HasAddresses(inner)) {
        RH_TRY(AddHeld(path, documents));
      } else {
        documents->untouched.push_back(path + ": is a directory without host-local's addresses");
      }
    } else if (IsDocument(name)) {
      RH_TRY(AddFile(path, documents));
    } else {
      documents->untouched.push_back(path + ": is neither .json nor .yaml");
    }
  }
  return {};
}

}  // namespace

Result<Documents> ReadDocuments(const std::vector<std::string>& paths) {
  Documents documents;
  for (const std::string& one : paths) {
    const std::string path = Trimmed(one);
    RH_TRY(IsDirectory(path) ? AddDirectory(path, &documents) : AddFile(path, &documents));
  }
  if (documents.device_configs.empty() && documents.networks.empty() && documents.held.empty()) {
    return Fail(ErrorCode::kInvalid, "found no document of the SR-IOV suite in " + Join(paths, ", "),
                "give sriov-network-device-plugin's config.json or ConfigMap, NetworkAttachmentDefinitions "
                "(`kubectl get net-attach-def -A -o json`), and host-local's directory");
  }
  return documents;
}

}  // namespace railhead::migrate
