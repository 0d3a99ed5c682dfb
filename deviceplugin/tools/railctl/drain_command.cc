// railctl drain, railctl undrain: takes a rail, PF or VF out of use, and back into use.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/protocol/cni_args.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/node_records.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/subject.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

struct DrainArguments {
  std::string target;
  std::string reason;
  std::string fabric = kFabricPath;
  bool force = false;
  Output output;
};

// What pods still have of a drained device.
struct PodsLeft {
  std::vector<std::string> devices;
  std::vector<std::string> pods;  // "NAMESPACE/NAME", or a container's id

  static void List(auto& f) {
    f("inPods", &PodsLeft::devices, {.column = "IN PODS"});
    f("pods", &PodsLeft::pods, {.column = "PODS"});
  }
};

// The outcome of railctl drain.
struct DrainResult {
  health::Drain drain;
  bool now = false;  // false: it was drained before
  PodsLeft left;

  static void List(auto& f) {
    f.Part(&DrainResult::drain);
    f("drained", &DrainResult::now);
    f.Part(&DrainResult::left);
  }
};

// What railctl drain lists without a target.
struct PresentDrain {
  health::Drain drain;
  PodsLeft left;

  static void List(auto& f) {
    f.Part(&PresentDrain::drain);
    f.Part(&PresentDrain::left);
  }
};

std::string DisplayName(const health::Drain& drain) {
  return drain.name == drain.device ? drain.device : drain.name + " (" + drain.device + ")";
}

// Of a rail its PF.
Result<std::string> DeviceOf(const Root& root, const NodeRecords& records, const std::string& target,
                             const std::string& fabric) {
  auto found = FindSubject(root, records, target);
  if (!found && !Exists(root.Path(fabric))) {
    const Error none = NoSuchFabric(fabric);
    found.error().hint = none.message + ", so this node knows no rail: " + none.hint;
  }
  const Subject subject = RH_TRY(std::move(found));
  if (!subject.IsDevice()) {
    const std::string devices = subject.devices.empty() ? "" : ": " + Join(subject.devices, ", ");
    return Fail(ErrorCode::kInvalid, "'" + target + "' is the " + subject.Title() + ", which has no drain",
                "name a rail, PF or VF" + devices);
  }
  if (subject.devices.empty())
    return Fail(ErrorCode::kNotFound, "this node has no PF on rail " + subject.name, "see railctl lldp");
  return subject.devices.front();
}

// Also of devices that the host has no longer. Held devices whose attachment cannot be read have no pod here.
PodsLeft LeftOf(const Root& root, const NodeRecords& records, const std::string& drained) {
  PodsLeft left;
  const auto in_reset = Journal(root).DevicesInReset();
  for (const std::string& device : Journal(root).HeldDevices()) {
    const inventory::NicFunction* function = records.inventory->Find(device);
    const auto holder = records.HolderOf(device);
    const bool drains_it = device == drained || (function != nullptr && function->pf.ToString() == drained) ||
                           (holder && holder->device->pf == drained);
    if (!drains_it || in_reset.contains(device)) continue;
    left.devices.push_back(device);
    if (!holder) continue;
    const std::string pod = PodName(holder->entry->cni_args);
    const std::string& name = pod.empty() ? holder->entry->key.container_id : pod;
    if (!Contains(left.pods, name)) left.pods.push_back(name);
  }
  return left;
}

int List(const Root& root, const DrainArguments& arguments) {
  const auto drains = health::ReadDrains(root);
  if (!drains) return Complain(drains.error(), kFailed);
  const NodeRecords records = drains->empty() ? NodeRecords() : ReadNodeRecords(root, arguments.fabric);
  std::vector<PresentDrain> list;
  for (const health::Drain& drain : *drains) list.push_back({drain, LeftOf(root, records, drain.device)});
  arguments.output.PrintList("drains", list);
  return kDone;
}

std::string TextOf(const DrainResult& drained) {
  std::string text = DisplayName(drained.drain);
  text += drained.now ? " is drained: no new pod gets it" : " was drained already";
  if (!drained.left.devices.empty()) text += "; still in pods: " + Join(drained.left.devices, ", ");
  if (!drained.left.pods.empty()) text += " (" + Join(drained.left.pods, ", ") + ")";
  return text + "\n";
}

int RunDrain(const Root& root, const DrainArguments& arguments) {
  if (arguments.target.empty()) return List(root, arguments);
  const NodeRecords records = ReadNodeRecords(root, arguments.fabric);
  const auto device = DeviceOf(root, records, arguments.target, arguments.fabric);
  if (!device) return Complain(device.error(), kFailed);
  const health::Drain drain{*device, arguments.target, arguments.reason, std::chrono::system_clock::now()};
  const auto added = AddDrain(root, drain);
  if (!added) return Complain(added.error(), kFailed);
  arguments.output.Print(DrainResult{drain, *added, LeftOf(root, records, *device)},
                         [](const DrainResult& drained) { return TextOf(drained); });
  return kDone;
}

// Faults of the device and of its VFs, besides the drain.
Result<std::vector<std::string>> OtherFaults(const Root& root, const std::string& device) {
  const auto state = RH_TRY(health::kHealthFile.Read(root));
  if (!state) {
    return Fail(
        ErrorCode::kNotFound,
        "no such file: " + health::kHealthFile.PathIn(root) + ": the health of " + device + " is unknown",
        "start railheadd, which writes it; or use --force");
  }
  std::vector<std::string> faults;
  for (const health::DeviceHealth& health : state->devices) {
    if (health.id != device && health.pf != device) continue;
    for (const health::HealthReason& reason : health.reasons) {
      if (reason.rule == health::HealthRule::kDrained || reason.device != health.id) continue;
      faults.push_back(std::string(NameOf(reason.rule)) + ": " + reason.text);
    }
  }
  return faults;
}

// A device that has left the node is known by what the drain says alone.
std::vector<health::Drain>::const_iterator FindDrain(const Root& root,
                                                     const std::vector<health::Drain>& drains,
                                                     const DrainArguments& arguments) {
  const auto drain = std::ranges::find_if(drains, [&](const health::Drain& one) {
    return one.name == arguments.target || one.device == arguments.target;
  });
  if (drain != drains.end()) return drain;
  const auto device =
      DeviceOf(root, ReadNodeRecords(root, arguments.fabric), arguments.target, arguments.fabric);
  return device ? std::ranges::find(drains, *device, &health::Drain::device) : drains.end();
}

int RunUndrain(const Root& root, const DrainArguments& arguments) {
  const auto drains = health::ReadDrains(root);
  if (!drains) return Complain(drains.error(), kFailed);
  const auto drain = FindDrain(root, *drains, arguments);
  if (drain == drains->end()) {
    return Complain({ErrorCode::kNotFound, arguments.target + " is not drained",
                     "railctl drain lists what is drained", 0},
                    kFailed);
  }
  if (!arguments.force) {
    const auto faults = OtherFaults(root, drain->device);
    if (!faults) return Complain(faults.error(), kFailed);
    if (!faults->empty()) {
      return Complain(
          {ErrorCode::kConflict, DisplayName(*drain) + " is still unhealthy: " + Join(*faults, "; "),
           "fix the cause and wait until `railctl health` reports it healthy, or use --force", 0},
          kFailed);
    }
  }
  const auto removed = health::RemoveDrain(root, drain->device);
  if (!removed) return Complain(removed.error(), kFailed);
  arguments.output.Print(*drain,
                         [](const health::Drain& one) { return DisplayName(one) + " is in use again\n"; });
  return kDone;
}

}  // namespace

void AddDrainCommands(CLI::App* app, const Root& root, int* status) {
  auto drain_arguments = std::make_shared<DrainArguments>();
  CLI::App* drain = app->add_subcommand(
      "drain",
      "Take a rail, PF or VF out of use; without TARGET, list what is drained, and what pods have of it");
  drain->add_option("TARGET", drain_arguments->target,
                    "rail0, or a PF or VF: its network device, RDMA device, PCI address, MAC or switch port");
  drain->add_option("--reason", drain_arguments->reason, "shown by railctl health");
  drain->add_option("--fabric", drain_arguments->fabric, "fabric.json, for rails")->capture_default_str();
  drain_arguments->output.AddTo(drain);
  help::Set(
      drain,
      {.more =
           "Running pods keep the device. The drain lasts over reboots. For the whole node: kubectl drain.",
       .examples = {{"railctl drain rail0 --reason \"bad cable\"", "no new pod gets a VF of rail0"},
                    {"railctl drain", "the drained devices, and the pods that still have some"}},
       .columns = ColumnsOf<PresentDrain>(),
       .statuses = {{kFailed, "the node has no such target, or it could not be drained"}}});
  drain->callback([drain_arguments, &root, status] { *status = RunDrain(root, *drain_arguments); });

  auto undrain_arguments = std::make_shared<DrainArguments>();
  CLI::App* undrain =
      app->add_subcommand("undrain", "Take a drained rail, PF or VF back into use once it is healthy");
  undrain
      ->add_option("TARGET", undrain_arguments->target,
                   "the name that was drained, or another name of the device")
      ->required();
  undrain->add_flag("--force", undrain_arguments->force,
                    "also while it has other faults, or its health is unknown");
  undrain_arguments->output.AddTo(undrain);
  help::Set(undrain, {.examples = {{"railctl undrain rail0", "once the cable is changed"},
                                   {"railctl undrain rail0 --force", "in spite of other faults"}},
                      .statuses = {{kFailed,
                                    "it is not drained, or a health rule is active for it or for one of "
                                    "its VFs"}}});
  undrain->callback([undrain_arguments, &root, status] { *status = RunUndrain(root, *undrain_arguments); });
}

}  // namespace railhead::railctl
