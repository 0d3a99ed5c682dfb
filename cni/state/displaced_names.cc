#include "cni/state/displaced_names.h"

#include <utility>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/json/record_io.h"

namespace railhead {
namespace {

constexpr std::string_view kRecordSuffix = ".json";

std::string RecordPath(const Root& root, const std::string& device) {
  return paths::DisplacedNames(root) + "/" + device + std::string(kRecordSuffix);
}

}  // namespace

std::string SubstituteName(const std::string& device, int n) {
  std::string name = "rh";
  for (const char c : device) {
    if (c != ':' && c != '.') name += c;
  }
  if (n > 0) name += static_cast<char>('a' + n - 1);
  return name;
}

bool IsSubstituteName(const std::string& device, const std::string& name) {
  const std::string first = SubstituteName(device);
  return name.starts_with(first) && name.size() <= first.size() + 1;
}

Result<std::optional<OwnNames>> ReadDisplacedNames(const Root& root, const std::string& device) {
  const std::string path = RecordPath(root, device);
  const auto text = RH_TRY(ReadRootFile(path));
  if (!text) return std::nullopt;
  return RH_TRY(ParseRecord<OwnNames>(*text, path));
}

Result<void> WriteDisplacedNames(const Root& root, const std::string& device, const OwnNames& names) {
  const std::string path = RecordPath(root, device);
  const std::string text = RH_TRY(FormatRecord(names, path));
  return WriteStateFile(root, path, text);
}

Result<void> RemoveDisplacedNames(const Root& root, const std::string& device) {
  RH_TRY(RemoveWritten(RecordPath(root, device)));
  return {};
}

Result<std::vector<std::string>> ListDisplacedDevices(const Root& root) {
  std::vector<std::string> devices;
  const auto names = RH_TRY(ListDirectory(paths::DisplacedNames(root)));
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (name.ends_with(kRecordSuffix)) devices.push_back(name.substr(0, name.size() - kRecordSuffix.size()));
  }
  return devices;
}

Result<std::string> OwnNameOf(const Root& root, const std::string& device, const std::string& current) {
  if (!IsSubstituteName(device, current)) return current;
  const auto own = RH_TRY(ReadDisplacedNames(root, device));
  return own ? own->name : current;
}

}  // namespace railhead
