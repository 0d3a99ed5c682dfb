// railctl drain, railctl return: parts of the node out of use, and back.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

struct DrainArguments {
  std::string part;
  std::string reason;
  std::string fabric = kFabricPath;
  bool force = false;
  Output output;
};

// A part, and what has become of it.
struct Drained {
  health::Drain drain;
  bool now = false;  // else it was drained before
  std::vector<std::string> in_pods;

  static void List(auto& f) {
    f.Part(&Drained::drain);
    f("drained", &Drained::now);
    f("inPods", &Drained::in_pods);
  }
};

std::string Called(const health::Drain& drain) {
  return drain.name == drain.device ? drain.device : drain.name + " (" + drain.device + ")";
}

// Address, PF's network device, or rail.
Result<std::string> DeviceOf(const Root& root, const DrainArguments& arguments) {
  const auto inventory = RH_TRY(Discover(root, inventory::HostNetwork{}));
  if (const inventory::NicFunction* function = inventory->Find(arguments.part)) return function->id;
  std::vector<std::string> known;
  for (const inventory::NicFunction& function : inventory->functions) {
    if (function.is_vf || function.pf_name.empty()) continue;
    if (function.pf_name == arguments.part) return function.id;
    known.push_back(function.pf_name);
  }
  if (const auto fabric = RH_TRY(ReadFabric(root, arguments.fabric))) {
    for (const auto& [rail, device] : resources::PfsOfRails(*fabric, *inventory)) {
      if (rail == arguments.part) return device;
      known.push_back(rail);
    }
  }
  return Fail(
      ErrorCode::kNotFound, "this node has no rail, PF or VF " + arguments.part,
      "it has " + (known.empty() ? "no PFs" : Join(known, ", ")) + "; VFs are named by their address");
}

// The devices that went out of use with it and are in pods.
std::vector<std::string> InPods(const Root& root, const std::string& device) {
  std::vector<std::string> in_pods;
  const auto inventory = Discover(root, inventory::HostNetwork{});
  const auto held = Journal(root).HeldDevices();
  if (!inventory) return in_pods;
  for (const inventory::NicFunction& function : (*inventory)->functions) {
    if ((function.id == device || function.pf.ToString() == device) && held.contains(function.id))
      in_pods.push_back(function.id);
  }
  return in_pods;
}

int List(const Root& root, const DrainArguments& arguments) {
  const auto drains = health::ReadDrains(root);
  if (!drains) return Complain(drains.error(), kFailed);
  arguments.output.PrintList("drains", *drains);
  return kDone;
}

std::string TextOf(const Drained& drained) {
  std::string text = Called(drained.drain);
  text += drained.now ? " is drained: no new pod gets it" : " was drained already";
  if (!drained.in_pods.empty()) text += "; still in pods: " + Join(drained.in_pods, ", ");
  return text + "\n";
}

int RunDrain(const Root& root, const DrainArguments& arguments) {
  if (arguments.part.empty()) return List(root, arguments);
  const auto device = DeviceOf(root, arguments);
  if (!device) return Complain(device.error(), kFailed);
  const health::Drain drain{*device, arguments.part, arguments.reason, std::chrono::system_clock::now()};
  const auto added = AddDrain(root, drain);
  if (!added) return Complain(added.error(), kFailed);
  arguments.output.Print(Drained{drain, *added, InPods(root, *device)},
                         [](const Drained& drained) { return TextOf(drained); });
  return kDone;
}

// What else there is against the part: of itself and of its VFs.
Result<std::vector<std::string>> Against(const Root& root, const std::string& device) {
  const auto state = RH_TRY(health::kHealthFile.Read(root));
  if (!state) {
    return Fail(ErrorCode::kNotFound,
                "there is no " + health::kHealthFile.PathIn(root) + ": nobody has looked whether " + device +
                    " is well",
                "railheadd writes it when it runs; --force returns it all the same");
  }
  std::vector<std::string> against;
  for (const health::DeviceHealth& health : state->devices) {
    if (health.id != device && health.pf != device) continue;
    for (const health::HealthReason& reason : health.reasons) {
      if (reason.rule == health::HealthRule::kDrained || reason.device != health.id) continue;
      against.push_back(std::string(NameOf(reason.rule)) + ": " + reason.text);
    }
  }
  return against;
}

int RunReturn(const Root& root, const DrainArguments& arguments) {
  const auto drains = health::ReadDrains(root);
  if (!drains) return Complain(drains.error(), kFailed);
  const auto drain = std::ranges::find_if(*drains, [&](const health::Drain& one) {
    return one.name == arguments.part || one.device == arguments.part;
  });
  if (drain == drains->end()) {
    return Complain(
        {ErrorCode::kNotFound, arguments.part + " is not drained", "all that is: railctl drain", 0}, kFailed);
  }
  if (!arguments.force) {
    const auto against = Against(root, drain->device);
    if (!against) return Complain(against.error(), kFailed);
    if (!against->empty()) {
      return Complain({ErrorCode::kConflict, Called(*drain) + " is not well: " + Join(*against, "; "),
                       "mend it and wait until `railctl health` has no more against it, or --force", 0},
                      kFailed);
    }
  }
  const auto removed = health::RemoveDrain(root, drain->device);
  if (!removed) return Complain(removed.error(), kFailed);
  (void)std::printf("%s is in use again\n", Called(*drain).c_str());
  return kDone;
}

}  // namespace

void AddDrainCommands(CLI::App* app, const Root& root, int* status) {
  auto drain_arguments = std::make_shared<DrainArguments>();
  CLI::App* drain =
      app->add_subcommand("drain", "take a rail, PF or VF out of use; without PART, list what is drained");
  drain->add_option("PART", drain_arguments->part,
                    "rail0, its PF's network device, or an address: 0000:43:10.0");
  drain->add_option("--reason", drain_arguments->reason, "for people, shown by railctl health");
  drain->add_option("--fabric", drain_arguments->fabric, "fabric.json, for rails")->capture_default_str();
  drain_arguments->output.AddTo(drain);
  drain->footer("Exit status: 0 done; 1 not. Pods that have it keep it. It stays drained over reboots.");
  drain->callback([drain_arguments, &root, status] { *status = RunDrain(root, *drain_arguments); });

  auto return_arguments = std::make_shared<DrainArguments>();
  CLI::App* back = app->add_subcommand("return", "use what was drained again, once it is well");
  back->add_option("PART", return_arguments->part, "as it was drained, or its address")->required();
  back->add_flag("--force", return_arguments->force,
                 "also when something else is against it, or nobody has looked");
  back->footer(
      "Exit status: 0 done; 1 it is not drained, or a health rule is active for it or for one of its VFs.");
  back->callback([return_arguments, &root, status] { *status = RunReturn(root, *return_arguments); });
}

}  // namespace railhead::railctl
