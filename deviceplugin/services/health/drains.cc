#include "deviceplugin/services/health/drains.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "cni/state/paths.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/json/record_io.h"

template struct railhead::StateFile<railhead::health::Drains>;

namespace railhead::health {
namespace {

constexpr std::chrono::seconds kLockLimit{10};

// Reads, lets `change` change, and writes when it says true.
template <typename Change>
Result<bool> Update(const Root& root, Change change) {
  const std::string lock_path = paths::Lock(root, "drains");
  RH_TRY_WRAP(MakeStateFolderOf(root, lock_path), kDrainsFile.what);
  const FileLock lock = RH_TRY_WRAP(FileLock::Acquire(lock_path, kLockLimit), kDrainsFile.what);
  Drains file;
  file.drains = RH_TRY(ReadDrains(root));
  if (!change(file.drains)) return false;
  RH_TRY(kDrainsFile.Write(root, file));
  return true;
}

auto Of(const std::string& device) {
  return [&device](const Drain& drain) { return drain.device == device; };
}

}  // namespace

Result<std::vector<Drain>> ReadDrains(const Root& root) {
  auto drains = RH_TRY(kDrainsFile.Read(root)).value_or(Drains{}).drains;
  std::ranges::sort(drains, {}, &Drain::device);
  return drains;
}

Result<bool> AddDrain(const Root& root, const Drain& drain) {
  return Update(root, [&](std::vector<Drain>& drains) {
    if (std::ranges::any_of(drains, Of(drain.device))) return false;
    drains.push_back(drain);
    return true;
  });
}

Result<bool> RemoveDrain(const Root& root, const std::string& device) {
  return Update(root, [&](std::vector<Drain>& drains) { return std::erase_if(drains, Of(device)) != 0; });
}

Result<std::set<std::string>> DrainedAmong(const Root& root,
                                           const std::vector<inventory::NicFunction>& functions) {
  std::set<std::string> drained;
  const auto drains = RH_TRY(ReadDrains(root));
  for (const inventory::NicFunction& function : functions) {
    const std::string pf = function.pf.ToString();
    if (std::ranges::any_of(drains, Of(function.id)) || std::ranges::any_of(drains, Of(pf)))
      drained.insert(function.id);
  }
  return drained;
}

Result<bool> DrainList::Refresh() {
  struct stat status {};
  Identity now;
  if (::stat(kDrainsFile.PathIn(root_).c_str(), &status) == 0)
    now = {status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  if (read_ == now) return false;
  std::map<std::string, Drain> drains;
  for (Drain& drain : RH_TRY(ReadDrains(root_))) drains.emplace(drain.device, std::move(drain));
  read_ = now;
  const bool other = drains != drains_;
  drains_ = std::move(drains);
  return other;
}

const Drain* DrainList::Find(const std::string& device) const {
  const auto found = drains_.find(device);
  return found == drains_.end() ? nullptr : &found->second;
}

}  // namespace railhead::health
