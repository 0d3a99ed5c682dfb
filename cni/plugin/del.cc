#include <map>

#include "cni/plugin/handoff_step.h"
#include "cni/plugin/home.h"
#include "cni/plugin/ipam_step.h"
#include "cni/plugin/locks.h"
#include "cni/plugin/plugin.h"

namespace railhead {
namespace {

// Locks each device once: a second descriptor would wait for the first.
class DeviceLocks {
 public:
  explicit DeviceLocks(const Root& root) : root_(root) {}
  Result<void> Lock(const std::string& device) {
    if (locks_.contains(device)) return {};
    locks_.emplace(device, RH_TRY(LockDevice(root_, device)));
    return {};
  }

 private:
  const Root& root_;
  std::map<std::string, FileLock> locks_;
};

// An entry that does not hold its devices was killed before anything was touched;
// they may be another pod's by now.
Result<bool> HoldsItsDevices(const Journal& journal, const JournalEntry& entry) {
  for (const auto& link : entry.links) {
    const auto holder = RH_TRY(journal.FindByDevice(link.device));
    if (!holder || holder->key != entry.key) return false;
  }
  return true;
}

}  // namespace

// The device first, then its address: an address must not go to another pod while
// the device still has it.
Result<void> RailheadPlugin::Del(const CniRequest& request) {
  const AttachmentKey key{request.network, request.container_id, request.ifname};
  const auto config = ReadPluginConfig(request);
  DeviceLocks locks(root_);
  // A killed ADD can leave its IPAM plugin running before there is an entry. That
  // holds the device's lock: what it still allocates is released here.
  const auto device = config ? DeviceOf(*config) : Result<PciAddress>(Fail(config.error()));
  if (device) RH_TRY(locks.Lock(device->ToString()));
  auto entry = RH_TRY(journal_.Find(key));
  if (!entry) {
    // ADD refuses such a configuration before it asks for an address. To refuse it
    // here as well would keep the sandbox from being removed.
    return config ? IpamDelUnknown(request, *config) : Result<void>();
  }
  for (const auto& link : entry->links) RH_TRY(locks.Lock(link.device));
  entry = RH_TRY(journal_.Find(key));
  if (!entry) return {};  // another DEL has finished while this one waited
  if (RH_TRY(HoldsItsDevices(journal_, *entry))) {
    RH_TRY(BringHome(root_, kernel_, *entry, request.netns, HomeDeadline()));
    RH_TRY(RemoveHandoffOf(root_, journal_, *entry));
  }
  RH_TRY(IpamRelease(request, *entry));
  // Last: while there is an entry, a DEL that failed or was killed comes again.
  return journal_.Remove(*entry);
}

}  // namespace railhead
