#include "tests/system/crash/snapshot.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "cni/state/paths.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/linux_kernel.h"
#include "tests/system/crash/raw_state.h"

namespace railhead::crash {
namespace {

// The addresses that the store holds: "address A held by CONTAINER NETWORK@IFNAME", and the findings of the
// store's own check. Takes the store's lock for a moment.
Result<std::vector<std::string>> HeldAddresses(const Root& root) {
  std::vector<std::string> lines;
  const auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
  if (!store) return lines;
  for (const auto& record : RH_TRY(store->List())) {
    if (record.state != ipam::AddressState::kHeld) continue;
    lines.push_back("address " + record.address.ToString() + " held by " + record.owner.container + " " +
                    record.owner.network + "@" + record.owner.ifname);
  }
  for (const auto& contradiction : RH_TRY(store->Verify())) lines.push_back("store: " + contradiction);
  return lines;
}

// Files below /run/railhead and /var/lib/railhead that are not part of an attachment. HeldAddresses() reads
// the store's addresses ("ipam"). The others are the log, the mode at the first ADD, and each device's last
// pod. A lock file counts only if it names the attachment that has its device.
constexpr std::string_view kStaying[] = {"ipam", "attach.log", "attach.log.1", "rdma-mode", "tenants"};

void Append(Snapshot& lines, std::vector<std::string> more) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Result<void> AddRdma(Kernel& kernel, const NetNs& ns, const std::string& name, Snapshot& lines) {
  const auto rdma = kernel.OpenRdma(ns);
  if (!rdma && rdma.error().code == ErrorCode::kUnsupported) return {};
  if (!rdma) return Fail(rdma.error());
  const bool shared = RH_TRY((*rdma)->NetnsMode()) == RdmaNetnsMode::kShared;
  lines.push_back(name + " rdma mode " + (shared ? "shared" : "exclusive"));
  for (const auto& device : RH_TRY((*rdma)->ListDevices()))
    lines.push_back(name + " rdma device " + device.name);
  return {};
}

Result<void> AddNamespace(Kernel& kernel, const NetNs& ns, const std::string& name, Snapshot& lines) {
  Append(lines, RH_TRY_WRAP(ReadRawState(ns, name), "namespace " + name));
  return AddRdma(kernel, ns, name, lines);
}

// The plugin keeps `kept` levels of directories even when they are empty.
Result<void> AddFiles(const Root& root, const std::string& path, int kept, Snapshot& lines) {
  struct stat status {};
  const std::string full = root.Path(path);
  if (::lstat(full.c_str(), &status) != 0) return {};
  const std::string mode = std::to_string(status.st_mode & 07777U);
  if (S_ISLNK(status.st_mode)) {
    lines.push_back("file " + path + " -> " + RH_TRY(ReadLink(full)).value_or(""));
  } else if (S_ISREG(status.st_mode)) {
    if (status.st_size == 0 && path.ends_with(paths::kLockSuffix)) return {};
    lines.push_back("file " + path + " " + mode + " " + RH_TRY(ReadFile(full)).value_or(""));
  } else if (S_ISDIR(status.st_mode)) {
    if (kept <= 0) lines.push_back("directory " + path + " " + mode);
    const auto names = RH_TRY(ListDirectory(full));
    if (!names) return {};
    for (const auto& name : *names) RH_TRY(AddFiles(root, path + "/" + name, kept - 1, lines));
  } else {
    lines.push_back("file " + path + " of type " + std::to_string(status.st_mode & S_IFMT));
  }
  return {};
}

Result<void> AddState(const Root& root, Snapshot& lines) {
  for (const char* const parent : {"/run/railhead", "/var/lib/railhead"}) {
    const auto names = RH_TRY(ListDirectory(root.Path(parent)));
    if (!names) continue;
    for (const auto& name : *names) {
      if (std::find(std::begin(kStaying), std::end(kStaying), name) != std::end(kStaying)) continue;
      RH_TRY(AddFiles(root, std::string(parent) + "/" + name, 1, lines));
    }
  }
  return AddFiles(root, "/run/cdi", 1, lines);
}

}  // namespace

Result<Snapshot> TakeSnapshot(const World& world) {
  Snapshot lines;
  LinuxKernel kernel(world.root);
  const NetNs host = RH_TRY(kernel.HostNetns());
  RH_TRY(AddNamespace(kernel, host, "host", lines));
  for (const auto& [path, name] : world.namespaces) {
    const auto ns = kernel.OpenNetns(path);
    if (!ns && ns.error().code == ErrorCode::kNotFound) continue;
    if (!ns) return Fail(ns.error());
    RH_TRY(AddNamespace(kernel, *ns, name, lines));
  }
  RH_TRY(AddState(world.root, lines));
  Append(lines, RH_TRY(HeldAddresses(world.root)));
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string Difference(const Snapshot& before, const Snapshot& after) {
  std::vector<std::string> gone;
  std::vector<std::string> come;
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(gone));
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(come));
  std::string text;
  for (const auto& line : gone) text += "- " + line + "\n";
  for (const auto& line : come) text += "+ " + line + "\n";
  return text;
}

}  // namespace railhead::crash
