// Who had each device last: the pods of one namespace are one tenant.
//
// One small file per device below /run/railhead, so that a record lives as long as the boot: VFs are made
// anew by it, and a record that outlived it would say nothing. A device without a record has been nobody's
// since it was made anew. ADD writes the record before its first change, and only if it says something else;
// who resets the device removes it. A process that is killed in between costs another reset and nothing else.
//
// A record that cannot be read counts as somebody else's, of whom something may be left.
// Threads and processes: callers hold the device's lock. Errors: kIo.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/protocol/plugin.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead {

struct Tenant {
  std::string pod_namespace;  // "": a call without a pod
  std::string pod;            // "NAMESPACE/NAME", for messages; "": likewise
  std::string left;           // why something of it may still work on the device; "": nothing is known

  bool operator==(const Tenant&) const = default;
};

template <>
struct Shape<Tenant> {
  static void List(auto& f) {
    f("namespace", &Tenant::pod_namespace, kPresentField);
    f("pod", &Tenant::pod, kPresentField);
    f("left", &Tenant::left, kSparseField);
  }
};

Tenant TenantOf(const CniArgs& args);
// "pod jobs/train-0", "a container without a pod"
std::string Describe(const Tenant& tenant);

Result<std::optional<Tenant>> ReadTenant(const Root& root, const std::string& device);
Result<void> WriteTenant(const Root& root, const std::string& device, const Tenant& tenant);
Result<void> RemoveTenant(const Root& root, const std::string& device);
// Sets `left` of a device that has a record.
Result<void> MarkLeft(const Root& root, const std::string& device, const std::string& why);
// The devices that have a record.
Result<std::vector<std::string>> ListTenantDevices(const Root& root);

}  // namespace railhead
