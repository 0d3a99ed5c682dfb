// What a writer that was killed left beside its own files: CDI specs, those of Allocate, those that describe
// the node, and the socket that was to become the one for ADD. Nobody reads them, but they would stay.
#include <string>
#include <string_view>
#include <vector>

#include "cni/state/paths.h"
#include "deviceplugin/services/reconcile/pass.h"
#include "netns/base/file_lock.h"
#include "netns/base/files.h"

namespace railhead {
namespace {

constexpr const char* kKilled = "its writer was killed";

struct Place {
  std::string directory;
  std::string prefix;  // others have files there, too
  std::string suffix;  // before kTemporarySuffix
};

std::vector<Place> PlacesOf(const Root& root) {
  return {{paths::Allocations(root), "", ".json"},
          {paths::DeviceInfos(root), "", "-device.json"},
          {paths::CdiDirectory(root), "railhead-", ".json"},
          {paths::CdiDirectory(root), "railheadd-", ".json"},
          {paths::CdiRecords(root), "", ".json"},
          {paths::Tenants(root), "", ".json"},
          // What the parts tell of the node: health, leaves, reach, drains.
          {root.Path("/run/railhead"), "", ".json"},
          {root.Path("/var/lib/railhead"), "", ".json"}};
}

bool IsTemporaryIn(const Place& place, std::string_view name) {
  if (!name.ends_with(kTemporarySuffix)) return false;
  name.remove_suffix(kTemporarySuffix.size());
  return name.starts_with(place.prefix) && name.ends_with(place.suffix);
}

// Sockets without their final name. Whoever makes one holds the lock until it has that, so they are listed
// once more under the lock.
void RemoveSockets(ReconcilePass& pass) {
  const std::string socket = paths::BindSocket(pass.root);
  const std::string folder = socket.substr(0, socket.rfind('/') + 1);
  const auto unnamed = [&] {
    auto names = NamesIn(pass, "half-written", folder);
    std::erase_if(names, [&](const std::string& name) { return !(folder + name).starts_with(socket + "."); });
    return names;
  };
  if (unnamed().empty()) return;
  const auto lock = FileLock::Acquire(paths::BindSocketLock(pass.root), std::chrono::milliseconds(0));
  if (!lock && lock.error().code == ErrorCode::kTimeout) return;
  if (!lock) return pass.Add("half-written", socket, kKilled, Fail(lock.error()));
  for (const std::string& name : unnamed())
    pass.Add("half-written", folder + name, kKilled, RemoveFile(folder + name));
}

}  // namespace

void ReconcileHalfWritten(ReconcilePass& pass) {
  for (const Place& place : PlacesOf(pass.root)) {
    for (const std::string& name : NamesIn(pass, "half-written", place.directory)) {
      const std::string path = place.directory + "/" + name;
      if (IsTemporaryIn(place, name)) pass.Add("half-written", path, kKilled, RemoveAbandoned(path));
    }
  }
  RemoveSockets(pass);
}

}  // namespace railhead
