// PodTrace: what the start of one pod has left on this node, for `railctl why`.
//
// The sources, in the order of a start, are kubelet's checkpoint and pod directories, railheadd's allocation
// records, and the CNI plugin's processes. Then come the journal and the log of attach timings. It asks no
// daemon and no API server, and changes nothing. It holds the lock of an unfinished attachment's device for a
// moment.
// Ownership: values. Threads: as Kernel. Errors: those of the journal and the checkpoint; kInvalid when the
// beginning of a container ID fits several pods. Other sources that cannot be read become notes.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/attach_log.h"
#include "cni/state/journal.h"
#include "deviceplugin/services/health/state_file.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"
#include "netns/kernel.h"

namespace railhead::pod_start {

using StartTime = std::chrono::system_clock::time_point;

// A process of the CNI plugin.
struct RunningCall {
  std::string command;  // "ADD"
  std::string container_id;
  std::string ifname;
  std::string pod;  // "NAMESPACE/NAME"; "": the runtime did not name it
  std::string pod_uid;
  std::optional<StartTime> since;  // nullopt: unknown
};

// The processes below /proc. None where another PID namespace hides them.
Result<std::vector<RunningCall>> ReadRunningCalls(const Root& root);

// The attachment that has a device.
struct DeviceHolder {
  std::string container_id;
  std::string pod;      // "NAMESPACE/NAME"; "": unknown
  bool reset = false;   // the device is being reset between two pods
  bool done = false;    // its ADD has finished
  bool of_pod = false;  // it is the traced pod's
};

// A device or slot that kubelet allocated to the pod.
struct AllocatedDevice {
  std::string id;
  std::string resource;
  std::string container;           // of the pod
  std::optional<StartTime> since;  // the latest Allocate
  std::optional<DeviceHolder> holder;
};

struct PodAttachment {
  JournalEntry entry;
  bool locked = false;      // of an unfinished one: a process works on it
  bool netns_gone = false;  // the pod's namespace is gone
};

// One resource of this node, and why a pod may get no device of this resource.
struct ResourceUse {
  std::string resource;
  std::size_t devices = 0;
  std::size_t in_use = 0;              // allocated to pods that kubelet has
  std::vector<std::string> unhealthy;  // "0000:43:10.0: link: PF pf0 has no carrier"
  std::vector<std::string> holders;    // "0000:43:10.1: pod train/worker-0"

  [[nodiscard]] std::size_t Free() const {
    const std::size_t taken = in_use + unhealthy.size();
    return taken < devices ? devices - taken : 0;
  }

  static void List(auto& f) {
    f("resource", &ResourceUse::resource, {.column = "RESOURCE"});
    f("devices", &ResourceUse::devices, {.column = "DEVICES"});
    f("inUse", &ResourceUse::in_use, {.column = "IN USE"});
    f.Column("UNHEALTHY", [](const ResourceUse& use) { return use.unhealthy.size(); });
    f.Output("free", &ResourceUse::Free, {.column = "FREE"});
    f("unhealthy", &ResourceUse::unhealthy);
    f("holders", &ResourceUse::holders, {.column = "HOLDERS", .wide = kWide});
  }
};

struct PodTrace {
  std::string pod;       // "NAMESPACE/NAME"; "": unknown
  std::string uid;       // "": unknown
  std::string sandbox;   // the container ID that was asked for; "": a pod was
  bool known = false;    // something on this node names it
  bool removed = false;  // kubelet has removed it
  std::vector<AllocatedDevice> allocated;
  std::vector<PodAttachment> attachments;    // of this boot
  std::vector<UnreadableEntry> unreadable;   // of its sandboxes
  std::vector<AttachTiming> failures;        // its failed ADDs that the log still has, oldest first
  std::vector<RunningCall> running;          // calls for it that have not finished
  std::vector<health::DeviceHealth> health;  // of all devices of the node
  std::vector<ResourceUse> resources;        // of a pod without devices
  std::vector<std::string> notes;            // what could not be read. Sentences
};

// `which`: a pod as NAMESPACE/NAME or by its UID; a container ID or its beginning.
Result<PodTrace> ReadPodTrace(const Root& root, Kernel& kernel, const std::string& which);

}  // namespace railhead::pod_start
