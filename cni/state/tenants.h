// The last tenant of each device: the pods of one namespace are one tenant.
//
// One small file per device below /run/railhead. A record lives as long as the boot, since a boot creates the
// VFs again. A device without a record had no tenant since its last reset. ADD writes a changed record before
// its first change of the device. A reset removes it. A process that is killed in between costs only another
// reset.
//
// A record that cannot be read counts as another tenant's that may have left something.
// Threads and processes: callers hold the device's lock. Errors: kIo.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/protocol/cni_args.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead {

struct Tenant {
  std::string pod_namespace;  // "": a call without a pod
  std::string pod;            // "NAMESPACE/NAME", for messages; "": likewise
  std::string leftover;  // why the tenant may still have something at work on the device; "": no reason known

  bool operator==(const Tenant&) const = default;
};

template <>
struct Shape<Tenant> {
  static void List(auto& f) {
    f("namespace", &Tenant::pod_namespace, kPresentField);
    f("pod", &Tenant::pod, kPresentField);
    f("leftover", &Tenant::leftover, kSparseField);
  }
};

Tenant TenantOf(const CniArgs& args);
// "pod jobs/train-0", "a container without a pod"
std::string Describe(const Tenant& tenant);

Result<std::optional<Tenant>> ReadTenant(const Root& root, const std::string& device);
Result<void> WriteTenant(const Root& root, const std::string& device, const Tenant& tenant);
Result<void> RemoveTenant(const Root& root, const std::string& device);
// Sets `leftover` of a device that has a record.
Result<void> MarkLeftover(const Root& root, const std::string& device, const std::string& why);
// The devices that have a record.
Result<std::vector<std::string>> ListTenantDevices(const Root& root);

}  // namespace railhead
