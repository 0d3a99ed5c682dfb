// Devices that wait for their next pod: reset now, so that an ADD of another tenant need not.
//
// A device has to be idle for a while, and in two passes: a pod that is started again at once gets its
// devices as they are, and finds none of them in a reset. Devices that kubelet has given out are not idle:
// their ADD may be on its way. An ADD that meets a reset all the same waits for the device's lock.
#include <chrono>
#include <set>

#include "cni/attachment/release.h"
#include "cni/attachment/reset.h"
#include "cni/fabric/fabric.h"
#include "cni/state/checkpoint.h"
#include "deviceplugin/services/reconcile/pass.h"

namespace railhead {
namespace {

// Others wait for the rest of the pass; no pod waits for these resets.
constexpr std::chrono::seconds kLongestShare{5};

// Held by an attachment, or given out by kubelet.
Result<std::set<std::string>> DevicesInUse(const Root& root, const JournalScan& scan) {
  std::set<std::string> devices = scan.loose;
  for (const auto* entries : {&scan.entries, &scan.earlier})
    for (const JournalEntry& entry : *entries) devices.merge(DevicesOf(entry));
  for (const UnreadableEntry& entry : scan.unreadable)
    devices.insert(entry.devices.begin(), entry.devices.end());
  for (const ContainerDevices& container : RH_TRY(ReadCheckpoint(root)))
    devices.insert(container.ids.begin(), container.ids.end());
  return devices;
}

// Without a policy that can be read nobody knows whether devices may be reset; ADD reports that.
bool MayReset(const Root& root) {
  const auto fabric = ReadFabric(root);
  return fabric && (!*fabric || (*fabric)->policy.reset != ResetPolicy::kNever);
}

// false: it is somebody's by now.
Result<bool> Reset(const ReconcilePass& pass, const std::string& device, IdleDevice* idle) {
  const auto locks = RH_TRY(TryLock(pass.root, {device}));
  if (!locks || RH_TRY(pass.journal.HoldsDevice(device))) return false;
  if (RH_TRY(ReadTenant(pass.root, device)) != idle->last) return false;
  const ResetOutcome outcome = RH_TRY(
      ResetDevice(pass.root, pass.kernel, pass.journal, device, Describe(idle->last) + " had it before"));
  idle->cannot_be_reset = !outcome.impossible.empty();
  return !idle->cannot_be_reset;
}

}  // namespace

void ReconcileTenants(ReconcilePass& pass, const JournalScan& scan, Reconciler::Clock::time_point now,
                      std::map<std::string, IdleDevice>& idle) {
  if (pass.stopped || !pass.options.repeated) return;
  const auto before = std::exchange(idle, {});
  const auto devices = ListTenantDevices(pass.root);
  if (!devices) return pass.Add("reset", "", "devices cannot be listed", Fail(devices.error()));
  if (devices->empty() || !MayReset(pass.root)) return;
  const auto in_use = DevicesInUse(pass.root, scan);
  if (!in_use) return pass.Add("reset", "", "kubelet's checkpoint cannot be read", Fail(in_use.error()));
  const auto until = std::chrono::steady_clock::now() + kLongestShare;
  for (const std::string& device : *devices) {
    if (in_use->contains(device)) continue;
    const auto last = ReadTenant(pass.root, device);
    if (!last || !*last) continue;  // an ADD replaces what cannot be read
    IdleDevice& one = idle[device] = {**last, now, false};
    const auto known = before.find(device);
    if (known == before.end() || known->second.last != one.last) continue;
    one = known->second;
    if (one.cannot_be_reset || now - one.since < pass.options.idle) continue;
    if (pass.stopped || std::chrono::steady_clock::now() >= until) continue;
    pass.Add("reset", device, Describe(one.last) + " had it", Reset(pass, device, &one));
  }
}

}  // namespace railhead
