// railctl nccl: the NCCL configurations of pods, and whether their NICs still match.
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
#include "cni/nccl/nccl_config_files.h"
#include "cni/protocol/cni_args.h"
#include "cni/state/cdi_spec.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/nccl_configs.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/rail_filter.h"
#include "deviceplugin/tools/railctl/subject.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/linux_kernel.h"
#include "netns/ns/netns.h"
#include "netns/ns/processes.h"

namespace railhead::railctl {
namespace {

// A NIC in the NCCL configuration.
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

struct NcclConfigReport {
  SandboxNcclConfig config;
  std::vector<NicLine> nics;
  std::optional<NcclConfigVerdict> verdict;  // of what was verified

  static void List(auto& f) {
    f.Part(&NcclConfigReport::config, [](auto& part) {
      using Config = SandboxNcclConfig;
      part("container", &Config::container);
      part("pod", &Config::pod);
      part("netns", &Config::netns);
      part("ncclConf", &Config::nccl_conf);
      part("ucxConf", &Config::ucx_conf);
      part("topology", &Config::topology);
      part("env", &Config::env);
    });
    f("nics", &NcclConfigReport::nics);
    f.Part(&NcclConfigReport::verdict, [](auto& part) {
      part("differences", &NcclConfigVerdict::differences);
      part.Part(&NcclConfigVerdict::overrides, [](auto& overrides) {
        overrides("overrides", &Overrides::found);
        overrides("unreadProcesses", &Overrides::unread);
      });
    });
  }
};

struct NcclConfigArguments {
  Output output;
  RailFilter rail;
  std::string which;
};

NcclConfigReport ReportOf(const SandboxNcclConfig& config,
                          std::optional<NcclConfigVerdict> verdict = std::nullopt) {
  NcclConfigReport report{config, {}, std::move(verdict)};
  for (const JournalEntry& entry : config.attachments) {
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

std::string TitleOf(const SandboxNcclConfig& config) {
  const std::string container = "container " + config.container;
  return (config.pod.empty() ? container : "pod " + config.pod + ", " + container) + ", " + config.netns;
}

void PrintNcclConfig(const Root& root, const Output& output, const NcclConfigReport& report) {
  const SandboxNcclConfig& config = report.config;
  std::printf("%s\n", TitleOf(config).c_str());
  output.PrintTable(report.nics);
  std::printf("%s%s\n%s", nccl::NcclConfigPath(root, config.container).c_str(),
              config.nccl_conf.empty() ? " is not there" : ":", config.nccl_conf.c_str());
  if (!config.ucx_conf.empty()) {
    std::printf("%s:\n%s", nccl::NcclConfigPath(root, config.container, nccl::kUcxConfName).c_str(),
                config.ucx_conf.c_str());
  }
  if (!config.env.empty()) std::printf("variables of its containers:\n%s\n", Join(config.env, "\n").c_str());
  if (config.topology)
    std::printf("a topology file: %s\n",
                nccl::NcclConfigPath(root, config.container, nccl::kTopologyName).c_str());
}

// One line for each: a job has many processes.
std::map<std::array<std::string, 4>, std::vector<std::string>> ByValue(
    const std::vector<Override>& overrides) {
  std::map<std::array<std::string, 4>, std::vector<std::string>> by_value;
  for (const Override& one : overrides)
    by_value[{one.variable, one.value, one.configured, one.where}].push_back(std::to_string(one.pid));
  return by_value;
}

void PrintVerdict(const NcclConfigReport& report) {
  const NcclConfigVerdict& verdict = *report.verdict;
  std::printf("%s: %s\n", TitleOf(report.config).c_str(),
              verdict.differences.empty() ? "matches" : "does not match");
  for (const std::string& difference : verdict.differences) std::printf("  %s\n", difference.c_str());
  for (const auto& [what, pids] : ByValue(verdict.overrides.found)) {
    const auto& [variable, value, configured, where] = what;
    std::printf("  %s=%s of process %s overrides %s of %s\n", variable.c_str(), value.c_str(),
                Join(pids, ", ").c_str(), configured.c_str(), where.c_str());
  }
  if (const auto& unread = verdict.overrides.unread; !unread.empty()) {
    std::vector<std::string> pids;
    pids.reserve(unread.size());
    for (const pid_t pid : unread) pids.push_back(std::to_string(pid));
    std::printf("  the variables of process %s were not compared: run railctl on the host, as root\n",
                Join(pids, ", ").c_str());
  }
}

int ShowNcclConfig(const Root& root, const NcclConfigArguments& options) {
  const auto configs = FindNcclConfigs(root, options.which);
  if (!configs) return Complain(configs.error(), kFailed);
  if (const auto rails = RailsToFilterBy(root, options.rail); !rails) return Complain(rails.error(), kFailed);
  std::vector<NcclConfigReport> reports;
  for (const auto& config : *configs) {
    NcclConfigReport report = ReportOf(config);
    options.rail.Keep(&report.nics, &NicLine::rail);
    if (!options.rail.IsGiven() || !report.nics.empty()) reports.push_back(std::move(report));
  }
  if (options.output.is_text()) {
    for (const NcclConfigReport& report : reports) PrintNcclConfig(root, options.output, report);
  } else {
    options.output.PrintList("ncclConfigs", reports);
  }
  return kDone;
}

int Verify(const Root& root, const NcclConfigArguments& options) {
  const auto configs = FindNcclConfigs(root, options.which);
  if (!configs) return Complain(configs.error(), kFailed);
  LinuxKernel kernel(root);
  std::vector<NcclConfigReport> reports;
  for (const auto& config : *configs) {
    auto verdict = VerifyNcclConfig(root, kernel, config);
    if (!verdict) return Complain(verdict.error(), kFailed);
    reports.push_back(ReportOf(config, *std::move(verdict)));
  }
  if (options.output.is_text()) {
    std::ranges::for_each(reports, PrintVerdict);
  } else {
    options.output.PrintList("ncclConfigs", reports);
  }
  const auto is_well = [](const NcclConfigReport& report) { return report.verdict->differences.empty(); };
  return std::ranges::all_of(reports, is_well) ? kDone : kFailed;
}

using Action = int (*)(const Root& root, const NcclConfigArguments& options);

std::shared_ptr<NcclConfigArguments> AddAction(CLI::App* command, Action action, const Root& root,
                                               int* status) {
  auto options = std::make_shared<NcclConfigArguments>();
  options->output.AddTo(command);
  command
      ->add_option("POD", options->which,
                   "NAMESPACE/NAME, a pod's UID, a container's id or its beginning, the path of a network "
                   "namespace, or a device or address that a pod has; default: all pods")
      ->type_name("");
  command->callback([&root, status, options, action] { *status = action(root, *options); });
  return options;
}

}  // namespace

void AddNcclCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* config = app->add_subcommand("nccl", "Show or verify the NCCL configurations of pods");
  config->require_subcommand(1);
  CLI::App* show = config->add_subcommand("show", "Print each pod's NICs and NCCL configuration");
  AddAction(show, ShowNcclConfig, root, status)->rail.AddTo(show);
  help::Set(show,
            {.examples = {{"railctl nccl show train/worker-0", "one pod's NICs, nccl.conf and variables"},
                          {"railctl nccl show --rail rail0", "the pods that have a NIC of rail0"}},
             .columns = ColumnsOf<NicLine>()});
  CLI::App* verify = config->add_subcommand(
      "verify", "Compare the NCCL configuration with the kernel and the pod's processes");
  AddAction(verify, Verify, root, status);
  help::Set(verify,
            {.more = "It says which NIC is another one now, and which variable of a process overrides the "
                     "NCCL configuration.",
             .examples = {{"railctl nccl verify", "all pods of this node"},
                          {"railctl nccl verify train/worker-0 -o json", "one pod, for a script"}},
             .statuses = {{kFailed, "a NIC differs from the NCCL configuration"}}});
}

}  // namespace railhead::railctl

namespace railhead::railctl {
namespace {

bool HasNcclConfig(const JournalEntry& entry) {
  return entry.nccl_config_required ||
         std::ranges::any_of(entry.devices, [](const auto& link) { return link.nccl.enabled; });
}

Result<void> VerifyOne(const Root& root, Kernel& kernel, const JournalEntry& entry,
                       std::vector<std::string>& differences) {
  const std::string name = entry.key.network + "@" + entry.key.ifname + ": ";
  if (entry.phase != Phase::kDone) {
    differences.push_back(name + "its ADD is running, or was killed");
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

// The specs of all devices for NCCL have the same variables.
Result<std::vector<std::string>> VariablesOf(const Root& root, const SandboxNcclConfig& config) {
  for (const JournalEntry& entry : config.attachments) {
    for (const AttachedDevice& link : entry.devices) {
      if (!link.nccl.enabled || !link.rdma.gid_index) continue;
      if (auto spec = RH_TRY(ReadCdiSpec(root, link.KubeletId()))) return std::move(spec->env);
    }
  }
  return std::vector<std::string>();
}

Result<void> ReadNcclFiles(const Root& root, SandboxNcclConfig& config) {
  const std::string& container = config.container;
  config.nccl_conf = RH_TRY(ReadFile(nccl::NcclConfigPath(root, container))).value_or("");
  config.ucx_conf = RH_TRY(ReadFile(nccl::NcclConfigPath(root, container, nccl::kUcxConfName))).value_or("");
  config.topology = Exists(nccl::NcclConfigPath(root, container, nccl::kTopologyName));
  config.env = RH_TRY(VariablesOf(root, config));
  return {};
}

}  // namespace

Result<std::vector<SandboxNcclConfig>> FindNcclConfigs(const Root& root, const std::string& which) {
  std::map<std::string, SandboxNcclConfig> by_container;
  std::optional<Subject> wanted;
  if (!which.empty()) wanted = RH_TRY(FindSubject(root, which));
  auto scan = RH_TRY(Journal(root).Scan());
  const auto is_wanted = [&](const std::string& container) {
    return !wanted || Contains(wanted->containers, container);
  };
  for (const UnreadableEntry& entry : scan.unreadable) {
    if (wanted && is_wanted(entry.key.container_id)) return Fail(entry.error);
  }
  for (JournalEntry& entry : scan.entries) {
    if (!HasNcclConfig(entry) || !is_wanted(entry.key.container_id)) continue;
    SandboxNcclConfig& config = by_container[entry.key.container_id];
    config.container = entry.key.container_id;
    config.pod = PodName(entry.cni_args);
    config.netns = entry.netns;
    config.attachments.push_back(std::move(entry));
  }
  std::vector<SandboxNcclConfig> configs;
  for (auto& [container, config] : by_container) {
    RH_TRY(ReadNcclFiles(root, config));
    configs.push_back(std::move(config));
  }
  if (configs.empty() && wanted) {
    return Fail(ErrorCode::kNotFound, "the " + wanted->Title() + " has no NCCL configuration",
                "see railctl nccl show for all pods that have one");
  }
  return configs;
}

Result<NcclConfigVerdict> VerifyNcclConfig(const Root& root, Kernel& kernel,
                                           const SandboxNcclConfig& config) {
  NcclConfigVerdict verdict;
  for (const JournalEntry& entry : config.attachments)
    RH_TRY(VerifyOne(root, kernel, entry, verdict.differences));
  const auto pod = RH_TRY(attachment::OpenPodOf(kernel, config.attachments.front()));
  if (!pod) return verdict;
  verdict.overrides = RH_TRY(FindOverrides(*pod, {{nccl::kNcclConfName, config.nccl_conf},
                                                  {nccl::kUcxConfName, config.ucx_conf},
                                                  {"the CDI spec", Join(config.env, "\n")}}));
  return verdict;
}

std::vector<Override> OverridesIn(pid_t pid, const std::string& environ, const ConfiguredLines& configured) {
  std::vector<Override> overrides;
  for (const std::string& line : Split(configured.text, '\n')) {
    const std::string name = line.substr(0, line.find('='));
    if (name.size() == line.size()) continue;
    for (const std::string& variable : Split(environ, '\0')) {
      if (variable == line || !variable.starts_with(name + "=")) continue;
      overrides.push_back(
          {pid, name, variable.substr(name.size() + 1), line.substr(name.size() + 1), configured.where});
    }
  }
  return overrides;
}

Result<Overrides> FindOverrides(const NetNs& pod, const std::vector<ConfiguredLines>& configured) {
  Overrides overrides;
  for (const pid_t pid : RH_TRY(ProcessesIn(pod))) {
    const auto environ = ReadFile("/proc/" + std::to_string(pid) + "/environ");
    if (!environ && environ.error().sys_errno == ESRCH) continue;
    if (!environ && environ.error().code == ErrorCode::kPermission) {
      overrides.unread.push_back(pid);
      continue;
    }
    if (!environ) return Fail(environ.error());
    if (!*environ) continue;
    for (const ConfiguredLines& lines : configured) {
      auto of_process = OverridesIn(pid, **environ, lines);
      std::move(of_process.begin(), of_process.end(), std::back_inserter(overrides.found));
    }
  }
  return overrides;
}

}  // namespace railhead::railctl
