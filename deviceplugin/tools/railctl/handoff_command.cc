// railctl handoff: what pods were told about their NICs, and whether it is still so.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cni/attachment/pod_network.h"
#include "cni/attachment/verify.h"
#include "cni/nccl/nccl_config.h"
#include "cni/protocol/plugin.h"
#include "cni/state/cdi_spec.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/linux_kernel.h"
#include "netns/ns/netns.h"

namespace railhead::railctl {
namespace {

// A NIC as the pod was told of it.
struct NicLine {
  std::string network;
  std::string interface;
  std::string device;
  std::string rail;
  std::string rdma_device;
  std::string uverbs;
  std::vector<std::string> addresses;
  std::optional<int> gid_index;

  static void List(auto& f) {
    f("network", &NicLine::network, {.column = "NETWORK", .wide = kWide});
    f("interface", &NicLine::interface, {.column = "INTERFACE"});
    f("rail", &NicLine::rail, {.column = "RAIL"});
    f("device", &NicLine::device, {.column = "DEVICE"});
    f("rdmaDevice", &NicLine::rdma_device, {.column = "RDMA DEVICE"});
    f("uverbs", &NicLine::uverbs, {.column = "UVERBS", .wide = kWide});
    f("gidIndex", &NicLine::gid_index, {.need = Need::kNull, .column = "GID"});
    f("addresses", &NicLine::addresses, {.column = "ADDRESSES"});
  }
};

struct HandoffReport {
  SandboxHandoff handoff;
  std::vector<NicLine> nics;
  std::optional<HandoffVerdict> verdict;  // of what was verified

  static void List(auto& f) {
    f.Part(&HandoffReport::handoff, [](auto& part) {
      using Handoff = SandboxHandoff;
      part("container", &Handoff::container);
      part("pod", &Handoff::pod);
      part("netns", &Handoff::netns);
      part("ncclConf", &Handoff::nccl_conf);
      part("ucxConf", &Handoff::ucx_conf);
      part("topology", &Handoff::topology);
      part("env", &Handoff::env);
    });
    f("nics", &HandoffReport::nics);
    f.Part(&HandoffReport::verdict, [](auto& part) {
      part("differences", &HandoffVerdict::differences);
      part("overrides", &HandoffVerdict::overrides);
    });
  }
};

struct HandoffArguments {
  Output output;
  std::string which;
};

HandoffReport ReportOf(const SandboxHandoff& handoff, std::optional<HandoffVerdict> verdict = std::nullopt) {
  HandoffReport report{handoff, {}, std::move(verdict)};
  for (const JournalEntry& entry : handoff.attachments) {
    for (const AttachedDevice& device : entry.devices) {
      NicLine& nic = report.nics.emplace_back(NicLine{entry.key.network,
                                                      device.pod_name,
                                                      device.device,
                                                      device.rail,
                                                      device.rdma.device,
                                                      device.rdma.uverbs,
                                                      {},
                                                      device.rdma.gid_index});
      for (const auto& address : device.addressing.addresses) nic.addresses.push_back(address.ToString());
    }
  }
  return report;
}

std::string TitleOf(const SandboxHandoff& handoff) {
  const std::string container = "container " + handoff.container;
  return (handoff.pod.empty() ? container : "pod " + handoff.pod + ", " + container) + ", " + handoff.netns;
}

void PrintHandoff(const Root& root, const Output& output, const HandoffReport& report) {
  const SandboxHandoff& handoff = report.handoff;
  std::printf("%s\n", TitleOf(handoff).c_str());
  output.PrintTable(report.nics);
  std::printf("%s%s\n%s", nccl::HandoffPath(root, handoff.container).c_str(),
              handoff.nccl_conf.empty() ? " is not there" : ":", handoff.nccl_conf.c_str());
  if (!handoff.ucx_conf.empty()) {
    std::printf("%s:\n%s", nccl::HandoffPath(root, handoff.container, nccl::kUcxConfName).c_str(),
                handoff.ucx_conf.c_str());
  }
  if (!handoff.env.empty())
    std::printf("variables of its containers:\n%s\n", Join(handoff.env, "\n").c_str());
  if (handoff.topology)
    std::printf("a topology file: %s\n",
                nccl::HandoffPath(root, handoff.container, nccl::kTopologyName).c_str());
}

// Of the many processes of a job one line for each value.
std::map<std::array<std::string, 4>, std::vector<std::string>> ByValue(
    const std::vector<Override>& overrides) {
  std::map<std::array<std::string, 4>, std::vector<std::string>> by_value;
  for (const Override& one : overrides)
    by_value[{one.variable, one.value, one.told, one.where}].push_back(std::to_string(one.pid));
  return by_value;
}

void PrintVerdict(const HandoffReport& report) {
  const HandoffVerdict& verdict = *report.verdict;
  std::printf("%s: %s\n", TitleOf(report.handoff).c_str(),
              verdict.differences.empty() ? "as it was told" : "not as it was told");
  for (const std::string& difference : verdict.differences) std::printf("  %s\n", difference.c_str());
  for (const auto& [what, pids] : ByValue(verdict.overrides)) {
    const auto& [variable, value, told, where] = what;
    std::printf("  %s=%s of process %s wins over %s of %s\n", variable.c_str(), value.c_str(),
                Join(pids, ", ").c_str(), told.c_str(), where.c_str());
  }
}

int ShowHandoff(const Root& root, const HandoffArguments& options) {
  const auto handoffs = FindHandoffs(root, options.which);
  if (!handoffs) return Complain(handoffs.error(), kFailed);
  std::vector<HandoffReport> reports;
  for (const auto& handoff : *handoffs) reports.push_back(ReportOf(handoff));
  if (options.output.is_text()) {
    for (const HandoffReport& report : reports) PrintHandoff(root, options.output, report);
  } else {
    options.output.PrintList("handoffs", reports);
  }
  return kDone;
}

int Verify(const Root& root, const HandoffArguments& options) {
  const auto handoffs = FindHandoffs(root, options.which);
  if (!handoffs) return Complain(handoffs.error(), kFailed);
  LinuxKernel kernel(root);
  std::vector<HandoffReport> reports;
  for (const auto& handoff : *handoffs) {
    auto verdict = VerifyHandoff(root, kernel, handoff);
    if (!verdict) return Complain(verdict.error(), kFailed);
    reports.push_back(ReportOf(handoff, *std::move(verdict)));
  }
  if (options.output.is_text()) {
    std::ranges::for_each(reports, PrintVerdict);
  } else {
    options.output.PrintList("handoffs", reports);
  }
  const auto is_well = [](const HandoffReport& report) { return report.verdict->differences.empty(); };
  return std::ranges::all_of(reports, is_well) ? kDone : kFailed;
}

using Action = int (*)(const Root& root, const HandoffArguments& options);

void AddAction(CLI::App* handoff, const char* name, const char* help, Action action, const Root& root,
               int* status) {
  auto options = std::make_shared<HandoffArguments>();
  CLI::App* command = handoff->add_subcommand(name, help);
  options->output.AddTo(command);
  command
      ->add_option("POD", options->which,
                   "a container's id or its beginning, NAMESPACE/NAME, a pod's UID, or the path of a network "
                   "namespace; default: all pods")
      ->type_name("");
  command->callback([&root, status, options, action] { *status = action(root, *options); });
}

}  // namespace

void AddHandoffCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* handoff = app->add_subcommand("handoff", "what pods were told about their NICs");
  handoff->require_subcommand(1);
  AddAction(handoff, "show", "the NICs of each pod, and its nccl.conf", ShowHandoff, root, status);
  AddAction(handoff, "verify",
            "compare the NCCL configuration with the kernel's present state and with the environment of the "
            "pod's processes; exit status 1: something differs",
            Verify, root, status);
}

}  // namespace railhead::railctl

namespace railhead::railctl {
namespace {

bool HasHandoff(const JournalEntry& entry) {
  return entry.handoff_required ||
         std::ranges::any_of(entry.devices, [](const auto& link) { return link.nccl.wanted; });
}

bool IsWanted(const JournalEntry& entry, const std::string& which) {
  return which.empty() || entry.key.container_id.starts_with(which) || PodName(entry.cni_args) == which ||
         PodUid(entry.cni_args) == which || entry.netns == which;
}

Result<void> VerifyOne(const Root& root, Kernel& kernel, const JournalEntry& entry,
                       std::vector<std::string>& differences) {
  const std::string name = entry.key.network + "@" + entry.key.ifname + ": ";
  if (entry.phase != Phase::kDone) {
    differences.push_back(name + "its ADD is at work, or was killed");
    return {};
  }
  auto network = RH_TRY(attachment::PodNetwork::OpenOf(kernel, entry));
  if (!network) {
    differences.push_back(name + "the pod's network namespace " + entry.netns + " is gone");
    return {};
  }
  for (const auto& difference : RH_TRY(FindDifferences(root, kernel, *network, entry)))
    differences.push_back(name + difference);
  return {};
}

// The variables are the same in the specs of all devices that are for NCCL.
Result<std::vector<std::string>> VariablesOf(const Root& root, const SandboxHandoff& handoff) {
  for (const JournalEntry& entry : handoff.attachments) {
    for (const AttachedDevice& link : entry.devices) {
      if (!link.nccl.wanted || !link.rdma.gid_index) continue;
      if (auto spec = RH_TRY(ReadCdiSpec(root, link.KubeletId()))) return std::move(spec->env);
    }
  }
  return std::vector<std::string>();
}

Result<void> ReadTold(const Root& root, SandboxHandoff& handoff) {
  const std::string& container = handoff.container;
  handoff.nccl_conf = RH_TRY(ReadFile(nccl::HandoffPath(root, container))).value_or("");
  handoff.ucx_conf = RH_TRY(ReadFile(nccl::HandoffPath(root, container, nccl::kUcxConfName))).value_or("");
  handoff.topology = Exists(nccl::HandoffPath(root, container, nccl::kTopologyName));
  handoff.env = RH_TRY(VariablesOf(root, handoff));
  return {};
}

}  // namespace

Result<std::vector<SandboxHandoff>> FindHandoffs(const Root& root, const std::string& which) {
  std::map<std::string, SandboxHandoff> by_container;
  auto scan = RH_TRY(Journal(root).Scan());
  for (const UnreadableEntry& entry : scan.unreadable) {
    if (!which.empty() && entry.key.container_id.starts_with(which)) return Fail(entry.error);
  }
  for (JournalEntry& entry : scan.entries) {
    if (!HasHandoff(entry) || !IsWanted(entry, which)) continue;
    SandboxHandoff& handoff = by_container[entry.key.container_id];
    handoff.container = entry.key.container_id;
    handoff.pod = PodName(entry.cni_args);
    handoff.netns = entry.netns;
    handoff.attachments.push_back(std::move(entry));
  }
  std::vector<SandboxHandoff> handoffs;
  for (auto& [container, handoff] : by_container) {
    RH_TRY(ReadTold(root, handoff));
    handoffs.push_back(std::move(handoff));
  }
  if (handoffs.empty() && !which.empty()) {
    return Fail(
        ErrorCode::kNotFound, "no pod of this node with a handoff is '" + which + "'",
        "a container's id, NAMESPACE/NAME, a pod's UID or a network namespace; all: railctl handoff show");
  }
  return handoffs;
}

Result<HandoffVerdict> VerifyHandoff(const Root& root, Kernel& kernel, const SandboxHandoff& handoff) {
  HandoffVerdict verdict;
  for (const JournalEntry& entry : handoff.attachments)
    RH_TRY(VerifyOne(root, kernel, entry, verdict.differences));
  const auto pod = RH_TRY(attachment::OpenPodOf(kernel, handoff.attachments.front()));
  if (!pod) return verdict;
  verdict.overrides = RH_TRY(FindOverrides(*pod, {{nccl::kNcclConfName, handoff.nccl_conf},
                                                  {nccl::kUcxConfName, handoff.ucx_conf},
                                                  {"the CDI spec", Join(handoff.env, "\n")}}));
  return verdict;
}

std::vector<Override> OverridesIn(pid_t pid, const std::string& environ, const ToldLines& told) {
  std::vector<Override> overrides;
  for (const std::string& line : Split(told.text, '\n')) {
    const std::string name = line.substr(0, line.find('='));
    if (name.size() == line.size()) continue;
    for (const std::string& variable : Split(environ, '\0')) {
      if (variable == line || !variable.starts_with(name + "=")) continue;
      overrides.push_back(
          {pid, name, variable.substr(name.size() + 1), line.substr(name.size() + 1), told.where});
    }
  }
  return overrides;
}

Result<std::vector<Override>> FindOverrides(const NetNs& pod, const std::vector<ToldLines>& told) {
  std::vector<Override> overrides;
  for (const pid_t pid : RH_TRY(ProcessesIn(pod))) {
    const auto environ = ReadFile("/proc/" + std::to_string(pid) + "/environ");
    if (!environ && environ.error().sys_errno == ESRCH) continue;
    if (!environ) return Fail(environ.error());
    if (!*environ) continue;
    for (const ToldLines& lines : told) {
      auto of_process = OverridesIn(pid, **environ, lines);
      std::move(of_process.begin(), of_process.end(), std::back_inserter(overrides));
    }
  }
  return overrides;
}

}  // namespace railhead::railctl
