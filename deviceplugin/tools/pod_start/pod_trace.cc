#include "deviceplugin/tools/pod_start/pod_trace.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cni/attachment/pod_network.h"
#include "cni/protocol/cni_args.h"
#include "cni/protocol/read_request.h"
#include "cni/state/allocation.h"
#include "cni/state/kubelet_checkpoint.h"
#include "cni/state/paths.h"
#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"

namespace railhead::pod_start {
namespace {

constexpr const char* kPluginProcess = "railhead";

// A pod that a source names. Not every source has all three names.
struct NamedPod {
  std::string pod;
  std::string uid;
  std::string container_id;
  StartTime time;  // the later, the likelier it is the pod that runs now

  [[nodiscard]] bool Is(const std::string& which) const {
    return pod == which || uid == which || container_id == which;
  }
};

struct TraceSources {
  JournalScan scan;
  std::vector<AttachTiming> failures;
  std::vector<RunningCall> calls;
  std::vector<ContainerDevices> checkpoint;
  std::vector<NamedPod> pods;
  std::vector<std::string> notes;
};

// proc_pid_stat(5): starttime is field 22, in clock ticks since boot. The name of the program, field 2, may
// have blanks and parentheses.
std::optional<StartTime> StartOf(const std::string& proc, const std::string& process) {
  constexpr std::size_t kStartTime = 22 - 3;
  const auto stat = ReadFile(process + "/stat");
  const auto uptime = ReadFile(proc + "uptime");
  if (!stat || !*stat || !uptime || !*uptime) return std::nullopt;
  const std::size_t name = (*stat)->rfind(')');
  if (name == std::string::npos || name + 2 > (*stat)->size()) return std::nullopt;
  const auto fields = Split((*stat)->substr(name + 2), ' ');
  const auto up = ParseInt((*uptime)->substr(0, (*uptime)->find('.')));
  const auto started = fields.size() > kStartTime ? ParseInt(fields[kStartTime]) : std::nullopt;
  if (!up || !started) return std::nullopt;
  const std::chrono::seconds age(*up - *started / ::sysconf(_SC_CLK_TCK));
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now() - age);
}

std::optional<RunningCall> CallOf(const std::string& process) {
  const auto text = ReadFile(process + "/environ");
  if (!text || !*text) return std::nullopt;
  std::map<std::string, std::string> variables;
  for (const std::string& line : Split(**text, '\0')) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  const auto request = ReadEnvironment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
  if (!request || request->container_id.empty()) return std::nullopt;
  return RunningCall{request->command,       request->container_id, request->ifname,
                     PodName(request->args), PodUid(request->args), std::nullopt};
}

std::optional<StartTime> ModifiedAt(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return std::chrono::system_clock::from_time_t(status.st_mtime);
}

// kubelet makes the folder of a pod's logs, NAMESPACE_NAME_UID, before the sandbox. Where it is not visible,
// only later traces connect a pod's name to its UID.
void AddPodsWithLogs(const Root& root, std::vector<NamedPod>& pods) {
  const auto names = ListDirectory(paths::PodLogs(root));
  if (!names || !*names) return;
  for (const std::string& name : **names) {
    const auto parts = Split(name, '_');
    if (parts.size() == 3) pods.push_back({parts[0] + "/" + parts[1], parts[2], {}, {}});
  }
}

void AddNamedPods(const Root& root, TraceSources& sources) {
  for (const JournalEntry& entry : sources.scan.entries) {
    if (IsReset(entry)) continue;
    sources.pods.push_back({PodName(entry.cni_args), PodUid(entry.cni_args), entry.key.container_id,
                            StartTime(std::chrono::seconds(entry.since))});
  }
  for (const UnreadableEntry& entry : sources.scan.unreadable)
    sources.pods.push_back({{}, {}, entry.key.container_id, {}});
  for (const AttachTiming& failed : sources.failures)
    sources.pods.push_back({failed.pod, failed.pod_uid, failed.key.container_id, failed.time});
  for (const RunningCall& call : sources.calls)
    sources.pods.push_back({call.pod, call.pod_uid, call.container_id, std::chrono::system_clock::now()});
  for (const ContainerDevices& devices : sources.checkpoint)
    sources.pods.push_back({{}, devices.pod_uid, {}, {}});
  const auto directories = ListDirectory(paths::KubeletPods(root));
  for (const std::string& uid :
       directories ? directories->value_or(std::vector<std::string>{}) : std::vector<std::string>{})
    sources.pods.push_back({{}, uid, {}, {}});
  AddPodsWithLogs(root, sources.pods);
}

Result<TraceSources> ReadSources(const Root& root) {
  TraceSources sources;
  sources.scan = RH_TRY(Journal(root).Scan());
  sources.checkpoint = RH_TRY(ReadCheckpoint(root));
  if (auto timings = ReadAttachTimings(root)) {
    sources.failures = *std::move(timings);
    std::erase_if(sources.failures, [](const AttachTiming& timing) { return timing.error.empty(); });
  } else {
    sources.notes.push_back("Failed ADDs are not known: " + Describe(timings.error()));
  }
  if (auto calls = ReadRunningCalls(root)) {
    sources.calls = *std::move(calls);
  } else {
    sources.notes.push_back("Running ADDs are not known: " + Describe(calls.error()));
  }
  AddNamedPods(root, sources);
  return sources;
}

// The pods whose sandbox has an ID that begins so. An empty name fits none.
Result<std::vector<NamedPod>> ByBeginning(const std::vector<NamedPod>& pods, const std::string& which) {
  std::vector<NamedPod> found;
  std::set<std::string> sandboxes;
  for (const NamedPod& pod : pods) {
    if (which.empty() || !pod.container_id.starts_with(which)) continue;
    found.push_back(pod);
    sandboxes.insert(pod.container_id);
  }
  if (sandboxes.size() > 1) {
    return Fail(ErrorCode::kInvalid, "several sandboxes of this node have an ID that begins with " + which,
                "one of " + Join({sandboxes.begin(), sandboxes.end()}, ", "));
  }
  return found;
}

// Of pods with one name that follow each other: the one that kubelet has, and the latest of these.
Result<NamedPod> FindPod(const Root& root, const TraceSources& sources, const std::string& which) {
  std::vector<NamedPod> found;
  std::ranges::copy_if(sources.pods, std::back_inserter(found),
                       [&](const NamedPod& pod) { return !which.empty() && pod.Is(which); });
  if (found.empty()) found = RH_TRY(ByBeginning(sources.pods, which));
  if (found.empty()) {
    const bool is_name = which.find('/') != std::string::npos;
    return NamedPod{is_name ? which : "", is_name ? "" : which, {}, {}};
  }
  NamedPod best = *std::ranges::max_element(found, {}, [&](const NamedPod& pod) {
    return std::tuple(!KubeletForgot(root, pod.uid), !pod.uid.empty(), pod.time);
  });
  for (const NamedPod& pod : sources.pods) {
    if (pod.uid.empty() || pod.uid != best.uid) continue;
    if (best.pod.empty()) best.pod = pod.pod;
  }
  return best;
}

// Whether a record of that pod and container is the traced pod's.
bool IsOf(const PodTrace& trace, const std::string& pod, const std::string& uid,
          const std::string& container_id) {
  if (!trace.uid.empty() && !uid.empty()) return uid == trace.uid;
  if (!trace.pod.empty() && !pod.empty()) return pod == trace.pod;
  return !trace.sandbox.empty() && container_id == trace.sandbox;
}

bool IsOf(const PodTrace& trace, const JournalEntry& entry) {
  return !IsReset(entry) &&
         IsOf(trace, PodName(entry.cni_args), PodUid(entry.cni_args), entry.key.container_id);
}

PodAttachment AttachmentOf(const Root& root, Kernel& kernel, const JournalEntry& entry) {
  PodAttachment found{entry};
  if (entry.phase == Phase::kPlanned && !entry.devices.empty()) {
    const auto lock =
        FileLock::Acquire(paths::Lock(root, entry.devices.front().device), std::chrono::milliseconds(0));
    found.locked = !lock && lock.error().code == ErrorCode::kTimeout;
  }
  const auto ns = attachment::OpenPodOf(kernel, entry);
  // Without the folder the namespace may only be hidden from this process.
  found.netns_gone = ns && !*ns && Exists(entry.netns.substr(0, entry.netns.rfind('/')));
  return found;
}

std::map<std::string, DeviceHolder> HoldersOf(const PodTrace& trace, const JournalScan& scan) {
  std::map<std::string, DeviceHolder> holders;
  for (const JournalEntry& entry : scan.entries) {
    const DeviceHolder holder{entry.key.container_id, PodName(entry.cni_args), IsReset(entry),
                              entry.phase == Phase::kDone, IsOf(trace, entry)};
    for (const AttachedDevice& device : entry.devices) {
      holders.insert_or_assign(device.device, holder);
      holders.insert_or_assign(device.KubeletId(), holder);
    }
  }
  return holders;
}

// Only devices with an allocation record: others are of another device plugin.
Result<void> AddAllocated(const Root& root, const TraceSources& sources, PodTrace& trace) {
  const auto holders = HoldersOf(trace, sources.scan);
  for (const ContainerDevices& devices : sources.checkpoint) {
    if (trace.uid.empty() || devices.pod_uid != trace.uid) continue;
    for (const std::string& id : devices.ids) {
      const auto record = RH_TRY(ReadAllocation(root, id));
      if (!record || record->resource != devices.resource) continue;
      AllocatedDevice device{id, devices.resource, devices.container, std::nullopt, std::nullopt};
      device.since = ModifiedAt(paths::Allocations(root) + "/" + id + ".json");
      if (const auto held = holders.find(id); held != holders.end()) device.holder = held->second;
      trace.allocated.push_back(std::move(device));
    }
  }
  return {};
}

// A plugin that has attached its devices may still resend announcements.
void AddRunning(const TraceSources& sources, PodTrace& trace) {
  for (const RunningCall& call : sources.calls) {
    if (!IsOf(trace, call.pod, call.pod_uid, call.container_id)) continue;
    const bool finished = std::ranges::any_of(trace.attachments, [&](const PodAttachment& attachment) {
      return attachment.entry.key.container_id == call.container_id &&
             attachment.entry.key.ifname == call.ifname && attachment.entry.phase == Phase::kDone;
    });
    if (call.command != "CHECK" && (call.command != "ADD" || !finished)) trace.running.push_back(call);
  }
}

std::string PodOfUid(const TraceSources& sources, const std::string& uid) {
  const auto named = std::ranges::find_if(
      sources.pods, [&](const NamedPod& pod) { return pod.uid == uid && !pod.pod.empty(); });
  return "pod " + (named == sources.pods.end() ? uid : named->pod);
}

ResourceUse UseOf(const Root& root, const TraceSources& sources, const PodTrace& trace,
                  const resources::ResourcePool& pool) {
  ResourceUse use{pool.spec.resource, pool.members.size(), 0, {}, {}};
  std::set<std::string> held;
  for (const ContainerDevices& devices : sources.checkpoint) {
    if (devices.resource != use.resource || KubeletForgot(root, devices.pod_uid)) continue;
    for (const std::string& id : devices.ids) {
      use.holders.push_back(id + ": " + PodOfUid(sources, devices.pod_uid));
      held.insert(id);
    }
  }
  use.in_use = held.size();
  for (const health::DeviceHealth& device : trace.health) {
    // A pod keeps a device that becomes Unhealthy.
    if (device.healthy || held.contains(device.id) || pool.Find(device.id) == nullptr) continue;
    use.unhealthy.push_back(device.id + ": " + health::TextOf(device.reasons));
  }
  return use;
}

Result<NodeSnapshot> SnapshotOfNode(const Root& root, Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(host));
  const auto network = RH_TRY(inventory::ReadHostNetwork(root, *route));
  return TakeSnapshot(root, {}, network, resources::DdpOfKernel(root));
}

void AddResources(const Root& root, Kernel& kernel, const TraceSources& sources, PodTrace& trace) {
  const auto node = SnapshotOfNode(root, kernel);
  if (!node) {
    trace.notes.push_back("The resources of this node are not known: " + Describe(node.error()));
    return;
  }
  for (const auto& pool : node->pools) trace.resources.push_back(UseOf(root, sources, trace, *pool));
}

void AddHealth(const Root& root, PodTrace& trace) {
  auto state = health::kHealthFile.Read(root);
  if (state && *state) {
    trace.health = std::move((*state)->devices);
  } else {
    trace.notes.push_back("The health of the devices is not known: " +
                          Describe(state ? health::kHealthFile.Missing(root) : state.error()));
  }
}

}  // namespace

Result<std::vector<RunningCall>> ReadRunningCalls(const Root& root) {
  const std::string proc = root.Path("/proc/");
  std::vector<RunningCall> calls;
  const auto names = RH_TRY(ListDirectory(proc));
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (!ParseInt(name)) continue;
    const auto command = ReadAttribute(proc + name + "/comm");
    if (!command || *command != kPluginProcess) continue;
    auto call = CallOf(proc + name);
    if (!call) continue;
    call->since = StartOf(proc, proc + name);
    calls.push_back(*std::move(call));
  }
  return calls;
}

Result<PodTrace> ReadPodTrace(const Root& root, Kernel& kernel, const std::string& which) {
  TraceSources sources = RH_TRY(ReadSources(root));
  const NamedPod named = RH_TRY(FindPod(root, sources, which));
  PodTrace trace;
  trace.pod = named.pod;
  trace.uid = named.uid;
  trace.sandbox = named.container_id;
  trace.notes = std::move(sources.notes);
  trace.known = std::ranges::any_of(
      sources.pods, [&](const NamedPod& pod) { return IsOf(trace, pod.pod, pod.uid, pod.container_id); });
  trace.removed = KubeletForgot(root, trace.uid);
  for (const JournalEntry& entry : sources.scan.entries) {
    if (IsOf(trace, entry)) trace.attachments.push_back(AttachmentOf(root, kernel, entry));
  }
  for (const AttachTiming& failed : sources.failures) {
    if (IsOf(trace, failed.pod, failed.pod_uid, failed.key.container_id)) trace.failures.push_back(failed);
  }
  AddRunning(sources, trace);
  RH_TRY(AddAllocated(root, sources, trace));
  for (const UnreadableEntry& entry : sources.scan.unreadable) {
    const bool has_device = std::ranges::any_of(
        trace.allocated, [&](const AllocatedDevice& device) { return entry.devices.contains(device.id); });
    if (has_device || entry.key.container_id == trace.sandbox) trace.unreadable.push_back(entry);
  }
  AddHealth(root, trace);
  if (trace.allocated.empty() && trace.attachments.empty()) AddResources(root, kernel, sources, trace);
  return trace;
}

}  // namespace railhead::pod_start
