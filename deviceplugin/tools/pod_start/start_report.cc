#include "deviceplugin/tools/pod_start/start_report.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "cni/protocol/cni_result.h"
#include "netns/base/text.h"

namespace railhead::pod_start {
namespace {

constexpr const char* kKubeletRetries =
    "kubelet makes a new sandbox after a pause, and the runtime calls ADD again.";
constexpr const char* kAddEndsByItself =
    "ADD fails by itself when its time is over, and kubelet tries again.";
constexpr const char* kReconcilerRestores =
    "The next ADD of the device, or a DEL, or railheadd within three passes restores it.";

std::string Counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

StartTime WallTimeOf(std::int64_t seconds) {
  return StartTime(std::chrono::seconds(seconds));
}

// "device 0000:43:10.0, which container c1 (pod train/worker-1) has"
std::string HeldText(const AllocatedDevice& device) {
  const DeviceHolder& holder = *device.holder;
  return "device " + device.id + ", which container " + holder.container_id +
         (holder.pod.empty() ? "" : " (pod " + holder.pod + ")") + " still has";
}

const health::DeviceHealth* HealthOf(const PodTrace& trace, const std::string& device) {
  const auto found = std::ranges::find(trace.health, device, &health::DeviceHealth::id);
  return found == trace.health.end() ? nullptr : &*found;
}

std::string UnhealthyText(const PodTrace& trace, const std::string& device) {
  const health::DeviceHealth* health = HealthOf(trace, device);
  return health == nullptr || health->healthy ? std::string() : health::TextOf(health->reasons);
}

std::string StepOf(const AllocatedDevice& device) {
  if (!device.holder) return "allocated";
  if (device.holder->reset) return "in reset";
  if (device.holder->of_pod) return device.holder->done ? "attached" : "attaching";
  return device.holder->pod.empty() ? "in container " + device.holder->container_id.substr(0, 12)
                                    : "in pod " + device.holder->pod;
}

const RunningCall* RunningOf(const PodTrace& trace, std::string_view command) {
  const auto found = std::ranges::find(trace.running, command, &RunningCall::command);
  return found == trace.running.end() ? nullptr : &*found;
}

const PodAttachment* UnfinishedOf(const PodTrace& trace) {
  const auto found = std::ranges::find_if(trace.attachments, [](const PodAttachment& attachment) {
    return attachment.entry.phase == Phase::kPlanned && !attachment.entry.devices.empty();
  });
  return found == trace.attachments.end() ? nullptr : &*found;
}

// The PF of an attachment's device that has a fault now, as "pf0: link: ...".
std::string FaultOfPf(const PodTrace& trace, const JournalEntry& entry) {
  for (const AttachedDevice& device : entry.devices) {
    const std::string& pf = device.pf.empty() ? device.device : device.pf;
    if (const std::string fault = UnhealthyText(trace, pf); !fault.empty())
      return std::string(pf).append(": ").append(fault);
  }
  return {};
}

bool HasAddresses(const JournalEntry& entry) {
  return std::ranges::any_of(
      entry.devices, [](const AttachedDevice& device) { return !device.addressing.addresses.empty(); });
}

const AllocatedDevice* HeldByAnother(const PodTrace& trace) {
  const auto found = std::ranges::find_if(
      trace.allocated, [](const AllocatedDevice& device) { return device.holder && !device.holder->of_pod; });
  return found == trace.allocated.end() ? nullptr : &*found;
}

void SuggestForHolder(const AllocatedDevice& device, StartReport& report) {
  const DeviceHolder& holder = *device.holder;
  if (holder.reset) return;
  report.todo.push_back("Find out why the DEL of container " + holder.container_id +
                        " hangs: the runtime's log" +
                        (holder.pod.empty() ? "" : "; railctl why " + holder.pod));
}

// Before its journal entry, an ADD waits for its devices.
void ExplainAcquiring(const PodTrace& trace, StartReport& report) {
  const AllocatedDevice* held = HeldByAnother(trace);
  if (held == nullptr) {
    report.what = "ADD reads its configuration and takes the locks of its devices.";
  } else if (held->holder->reset) {
    report.what = "ADD waits for the reset of device " + held->id + ", which another namespace's pod had.";
  } else {
    report.what = "ADD waits for " + HeldText(*held) + ": its DEL has not come yet.";
  }
  if (held != nullptr) SuggestForHolder(*held, report);
}

void ExplainChanging(const PodTrace& trace, const JournalEntry& entry, StartReport& report) {
  const std::string fault = FaultOfPf(trace, entry);
  if (!entry.ipam_type.empty() && !HasAddresses(entry)) {
    report.what = "ADD waits for an address from the IPAM plugin " + entry.ipam_type + ".";
    report.todo.emplace_back("railctl ipam events: whether addresses are exhausted");
  } else if (!fault.empty()) {
    report.what = "ADD waits for the link. " + fault + ".";
    report.todo.emplace_back("Check cable, switch port and PF: railctl health");
  } else {
    report.what = "ADD sets up the devices: VF settings, link, address probes, RDMA port and GID, gateway.";
  }
}

void ExplainRunningAdd(const PodTrace& trace, const RunningCall& call, StartReport& report) {
  report.state = StartState::kAttaching;
  report.since = call.since;
  report.next = kAddEndsByItself;
  const auto own = std::ranges::find_if(trace.attachments, [&](const PodAttachment& attachment) {
    return attachment.entry.key.container_id == call.container_id &&
           attachment.entry.key.ifname == call.ifname;
  });
  if (own == trace.attachments.end()) return ExplainAcquiring(trace, report);
  ExplainChanging(trace, own->entry, report);
}

void ExplainUnfinished(const PodTrace& trace, const PodAttachment& attachment, StartReport& report) {
  report.since = WallTimeOf(attachment.entry.since);
  if (attachment.locked) {
    report.state = StartState::kAttaching;
    report.next = kAddEndsByItself;
    return ExplainChanging(trace, attachment.entry, report);
  }
  report.state = StartState::kInterrupted;
  report.what = "An ADD of network " + attachment.entry.key.network +
                " was killed, or its restore failed: nothing works on it now.";
  report.next = kReconcilerRestores;
  report.todo.push_back("railctl journal restore " + attachment.entry.key.ToString() +
                        ": restores the devices now");
}

void ExplainUnreadable(const UnreadableEntry& entry, StartReport& report) {
  report.state = StartState::kInterrupted;
  report.what = "The journal entry " + entry.path + " cannot be read: " + Describe(entry.error) + ".";
  report.next = "Nothing: its devices stay out of use, and its sandbox cannot end.";
  report.todo.push_back("railctl journal restore " +
                        (entry.devices.empty() ? entry.path : *entry.devices.begin()));
}

void ExplainRunningDel(const RunningCall& call, StartReport& report) {
  report.state = StartState::kEnding;
  report.since = call.since;
  report.what = "DEL of container " + call.container_id + " restores the devices.";
  report.next = "DEL waits up to 30 s for devices of a deleted namespace, then the runtime repeats it.";
}

void ExplainAttached(const PodTrace& trace, StartReport& report) {
  report.state = StartState::kAttached;
  std::int64_t since = 0;
  const PodAttachment* gone = nullptr;
  for (const PodAttachment& attachment : trace.attachments) {
    since = std::max(since, attachment.entry.since);
    if (attachment.netns_gone || attachment.entry.devices.empty()) gone = &attachment;
  }
  report.since = WallTimeOf(since);
  const std::string name = report.pod.empty() ? trace.attachments.front().entry.key.container_id : report.pod;
  if (gone == nullptr && !trace.removed) {
    report.what = "All devices of the pod are attached.";
    report.next = "The runtime starts the containers. PreStartContainer checks the devices once more.";
    report.todo.push_back("railctl nccl verify " + name + ": compares the NICs with the NCCL configuration");
    return;
  }
  report.state = StartState::kEnding;
  if (gone != nullptr && gone->entry.devices.empty()) {
    report.what = "The devices are on the host again, and the IPAM plugin has not released their addresses.";
  } else if (gone != nullptr) {
    report.what = "The pod's network namespace " + gone->entry.netns + " is gone, and its DEL has not come.";
  } else {
    report.what = "kubelet has removed the pod, and its DEL has not come.";
  }
  report.next = kReconcilerRestores;
  report.todo.emplace_back("The runtime's log: why the DEL of the sandbox fails");
}

bool AllAttached(const PodTrace& trace) {
  return !trace.attachments.empty() &&
         std::ranges::all_of(trace.allocated, [](const AllocatedDevice& device) {
           return device.holder && device.holder->of_pod && device.holder->done;
         });
}

void ExplainFailing(const PodTrace& trace, StartReport& report) {
  const AttachTiming& latest = trace.failures.back();
  report.state = StartState::kFailing;
  report.since = trace.failures.front().time;
  report.what = "ADD of network " + latest.key.network + " fails with code " + std::to_string(latest.code) +
                ": " + latest.error + ".";
  report.next = kKubeletRetries;
  if (!latest.hint.empty()) report.todo.push_back(latest.hint);
  report.todo.push_back("railctl explain " + std::to_string(latest.code) + ": the cases of this code");
  if (latest.code == kCniExhausted)
    report.todo.emplace_back("railctl ipam list: the holders of the addresses");
  for (const DeviceStep& device : report.devices) {
    if (!device.unhealthy.empty()) report.todo.push_back("railctl health " + device.device);
  }
}

void ExplainAllocated(const PodTrace& trace, StartReport& report) {
  report.state = StartState::kAllocated;
  for (const AllocatedDevice& device : trace.allocated) {
    if (device.since && (!report.since || *device.since > *report.since)) report.since = device.since;
  }
  const auto missing = std::ranges::count_if(
      report.devices, [](const DeviceStep& device) { return device.step != "attached"; });
  report.what = "kubelet has allocated " + Counted(trace.allocated.size(), "device") +
                ", and no ADD has come for " + std::to_string(missing) + " of them.";
  report.next = "kubelet mounts the volumes, the runtime makes the sandbox, and Multus calls ADD.";
  const std::string pod = report.pod.empty() ? "POD" : report.pod.substr(report.pod.find('/') + 1);
  report.todo.push_back("kubectl describe pod " + pod + ": events of kubelet, the runtime and Multus");
  report.todo.emplace_back("The pod's annotation k8s.v1.cni.cncf.io/networks must name the networks of " +
                           trace.allocated.front().resource);
  if (const AllocatedDevice* held = HeldByAnother(trace)) SuggestForHolder(*held, report);
}

// The resources of which a new pod gets nothing.
std::string ExhaustedText(const PodTrace& trace) {
  std::string text;
  for (const ResourceUse& use : trace.resources) {
    if (use.Free() > 0) continue;
    text += " No healthy device of " + use.resource + " is free: " + std::to_string(use.in_use) + " of " +
            std::to_string(use.devices) + " in use, " + std::to_string(use.unhealthy.size()) + " unhealthy.";
  }
  return text;
}

void SuggestForResources(const PodTrace& trace, StartReport& report) {
  for (const ResourceUse& use : trace.resources) {
    if (use.Free() > 0) continue;
    if (!use.unhealthy.empty()) report.todo.emplace_back("railctl health: why devices are unhealthy");
    if (!use.holders.empty())
      report.todo.emplace_back("railctl why POD -o wide: which pods hold the devices");
    return;
  }
}

void ExplainUnallocated(const PodTrace& trace, StartReport& report) {
  report.state = StartState::kUnallocated;
  report.what = "kubelet has the pod, and has allocated it no device of Railhead." + ExhaustedText(trace);
  report.next = "Nothing: kubelet allocates only when it admits a pod.";
  report.todo.emplace_back("The container's resources.limits must name a resource of Railhead");
  report.todo.emplace_back("kubectl describe pod: UnexpectedAdmissionError has railheadd's message");
  SuggestForResources(trace, report);
}

void ExplainUnknown(const PodTrace& trace, StartReport& report) {
  report.what = trace.removed && trace.known ? "kubelet has removed the pod, and no device is left in it."
                                             : "Nothing on this node names the pod.";
  report.what += ExhaustedText(trace);
  report.next = "Nothing happens here: the pod is on another node, not scheduled yet, or gone.";
  report.todo.emplace_back("kubectl get pod -o wide: whether the pod is on this node, or still Pending");
  if (!trace.pod.empty() && trace.uid.empty()) {
    report.todo.emplace_back("railctl why UID: kubelet's files name pods by UID (kubectl get pod -o yaml)");
  }
  SuggestForResources(trace, report);
}

// Which errors, and how often each.
std::vector<std::string> TriedText(const std::vector<AttachTiming>& failures) {
  struct Kind {
    std::size_t times = 0;
    const AttachTiming* latest = nullptr;
  };
  std::map<std::pair<int, std::string>, Kind> kinds;
  for (const AttachTiming& failed : failures) {
    Kind& kind = kinds[{failed.code, failed.error}];
    ++kind.times;
    kind.latest = &failed;
  }
  std::vector<std::pair<StartTime, std::string>> lines;
  lines.reserve(kinds.size());
  for (const auto& [what, kind] : kinds) {
    lines.emplace_back(kind.latest->time, Counted(kind.times, "ADD") + " with code " +
                                              std::to_string(what.first) + ", the latest at " +
                                              FormatTime(kind.latest->time) + ": " + what.second);
  }
  std::ranges::sort(lines);
  std::vector<std::string> tried;
  tried.reserve(lines.size());
  for (auto& [time, line] : lines) tried.push_back(std::move(line));
  return tried;
}

StartReport ReportOf(const PodTrace& trace) {
  StartReport report;
  report.pod = trace.pod;
  report.uid = trace.uid;
  report.tried = TriedText(trace.failures);
  report.resources = trace.resources;
  report.notes = trace.notes;
  if (!trace.failures.empty()) {
    const AttachTiming& latest = trace.failures.back();
    report.failure =
        LatestFailure{latest.time, latest.code, latest.error, latest.hint, trace.failures.size()};
  }
  for (const AllocatedDevice& device : trace.allocated)
    report.devices.push_back(
        {device.id, device.resource, device.container, StepOf(device), UnhealthyText(trace, device.id)});
  return report;
}

}  // namespace

StartReport ExplainStart(const PodTrace& trace) {
  StartReport report = ReportOf(trace);
  if (!trace.unreadable.empty()) {
    ExplainUnreadable(trace.unreadable.front(), report);
  } else if (const RunningCall* add = RunningOf(trace, "ADD")) {
    ExplainRunningAdd(trace, *add, report);
  } else if (const RunningCall* del = RunningOf(trace, "DEL")) {
    ExplainRunningDel(*del, report);
  } else if (const PodAttachment* unfinished = UnfinishedOf(trace)) {
    ExplainUnfinished(trace, *unfinished, report);
  } else if (AllAttached(trace)) {
    ExplainAttached(trace, report);
  } else if (trace.removed || !trace.known) {
    ExplainUnknown(trace, report);
  } else if (!trace.failures.empty()) {
    ExplainFailing(trace, report);
  } else if (!trace.allocated.empty()) {
    ExplainAllocated(trace, report);
  } else {
    ExplainUnallocated(trace, report);
  }
  return report;
}

}  // namespace railhead::pod_start
