#include "tests/system/crash/daemon_check.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cni/state/allocation.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "cni/state/slot_name.h"
#include "deviceplugin/node/resources/device_info.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"
#include "tests/support/listening.h"

namespace railhead::crash {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Lines = std::vector<std::string>;

std::optional<Json> Parse(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text || !*text) return std::nullopt;
  Json json = Json::parse(**text, nullptr, false);
  return json.is_discarded() ? std::nullopt : std::optional(std::move(json));
}

void CheckDevices(DaemonNode& node, Lines* wrong) {
  for (const auto& [resource, expected] : node.expected()) {
    std::set<std::string> ids;
    std::size_t healthy = 0;
    const auto devices = node.kubelet().Present(resource);
    for (const auto& device : devices) {
      ids.insert(device.id);
      healthy += device.healthy ? 1 : 0;
    }
    if (ids.size() != devices.size()) wrong->push_back(resource + " has a device twice");
    const bool all_there = ids.size() == expected.devices || expected.devices == 0;
    if (all_there && healthy == expected.healthy) continue;
    wrong->push_back(resource + " has " + std::to_string(ids.size()) + " devices, " +
                     std::to_string(healthy) + " of them healthy, and not " +
                     std::to_string(expected.devices) + " and " + std::to_string(expected.healthy));
  }
}

void CheckGiven(const DaemonNode& node, Lines* wrong) {
  for (const Given& given : node.given()) {
    for (const std::string& id : given.ids) {
      const auto record = ReadAllocation(node.root(), id);
      if (!record || !*record) {
        wrong->push_back("there is no record of " + id);
        continue;
      }
      if ((*record)->resource != given.resource || (*record)->siblings != given.ids)
        wrong->push_back("the record of " + id + " is of another allocation");
      if (IsSlot(id)) continue;
      const auto info = Parse(resources::DeviceInfoPath(node.root(), given.resource, id));
      if (!info || (*info)["pci"]["pci-address"] != id)
        wrong->push_back("there is no device-info file of " + id);
      if (!node.IsNamed()) continue;
      const auto spec = Parse(paths::CdiDirectory(node.root()) + "/railheadd-" + id + ".json");
      if (!spec || (*spec)["devices"][0]["name"] != id) wrong->push_back("there is no CDI spec of " + id);
    }
  }
}

// A running railheadd writes files at times. Such a file is replaced soon, or its writer holds the lock
// (WriteAtomic). For a moment between making and locking it, neither is true.
bool IsLeftHalfWritten(const std::string& path) {
  struct stat first {};
  if (::stat(path.c_str(), &first) != 0) return false;
  for (int look = 0; look < 100; ++look) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    struct stat now {};
    if (!fd.valid() || ::fstat(fd.get(), &now) != 0 || now.st_ino != first.st_ino) return false;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
    (void)::flock(fd.get(), LOCK_UN);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

void CheckFiles(const DaemonNode& node, Lines* wrong) {
  std::error_code error;
  for (const char* directory : {"/run", "/var"}) {
    for (fs::recursive_directory_iterator at(node.root().Path(directory), error), end; at != end;
         at.increment(error)) {
      if (error) break;
      const std::string path = at->path();
      if (path.ends_with(kTemporarySuffix) && IsLeftHalfWritten(path))
        wrong->push_back(path + " was left half written");
      // It may have been removed since the directory was read.
      if (path.ends_with(".json") && !Parse(path) && Exists(path)) wrong->push_back(path + " cannot be read");
      if (fs::is_socket(at->symlink_status(error)) && !testing::SomebodyListens(path))
        wrong->push_back("nobody listens on " + path);
    }
  }
}

void CheckSockets(const DaemonNode& node, Lines* wrong) {
  std::size_t count = 0;
  const auto names = ListDirectory(node.KubeletDirectory());
  for (const std::string& name : names.value_or(std::nullopt).value_or(Lines{})) {
    if (!name.starts_with("railhead-")) continue;
    ++count;
    if (!testing::SomebodyListens(node.KubeletDirectory() + "/" + name))
      wrong->push_back("nobody listens on " + name);
  }
  std::size_t offered = 0;
  for (const auto& [resource, expected] : node.expected()) offered += expected.devices > 0 ? 1 : 0;
  // A process that has offered a resource continues to serve it, without devices.
  if (count < offered || count > node.expected().size())
    wrong->push_back(std::to_string(count) + " sockets for " + std::to_string(offered) + " resources");
}

void CheckAttachments(const DaemonNode& node, Lines* wrong) {
  const auto scan = Journal(node.root()).Scan();
  if (!scan) return wrong->push_back(Describe(scan.error()));
  for (const UnreadableEntry& entry : scan->unreadable) wrong->push_back(Describe(entry.error));
  std::set<std::string> taken;
  for (const JournalEntry& entry : scan->entries) {
    for (const AttachedDevice& link : entry.devices) {
      if (!taken.insert(link.device).second) wrong->push_back(link.device + " is in two attachments");
      if (!link.slot.empty() && !taken.insert(link.slot).second)
        wrong->push_back(link.slot + " is in two attachments");
    }
  }
}

}  // namespace

Result<void> CheckNode(DaemonNode& node) {
  Lines wrong;
  CheckDevices(node, &wrong);
  CheckGiven(node, &wrong);
  CheckFiles(node, &wrong);
  CheckSockets(node, &wrong);
  CheckAttachments(node, &wrong);
  if (wrong.empty()) return {};
  return Fail(ErrorCode::kConflict, Join(wrong, "\n") + "\n" + node.EndOfLog());
}

}  // namespace railhead::crash
