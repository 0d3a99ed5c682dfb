// railctl handoff: what pods were told about their NICs, and whether it is still so.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cni/nccl/nccl_files.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/handoff_report.h"
#include "deviceplugin/tools/railctl/print.h"
#include "netns/base/text.h"
#include "netns/linux_kernel.h"

namespace railhead::railctl {
namespace {

struct HandoffArguments {
  bool json = false;
  std::string which;
};

std::string AddressesOf(const AttachedLink& link) {
  std::vector<std::string> addresses;
  addresses.reserve(link.addresses.size());
  for (const auto& address : link.addresses) addresses.push_back(address.ToString());
  return Join(addresses, ",");
}

std::string GidOf(const AttachedLink& link) {
  return link.gid_index ? std::to_string(*link.gid_index) : "-";
}

nlohmann::json AsJson(const SandboxHandoff& handoff) {
  nlohmann::json nics = nlohmann::json::array();
  for (const JournalEntry& entry : handoff.attachments) {
    for (const AttachedLink& link : entry.links) {
      nlohmann::json nic{{"network", entry.key.network},
                         {"interface", link.pod_name},
                         {"device", link.device},
                         {"rail", link.rail},
                         {"rdmaDevice", link.rdma_device},
                         {"uverbs", link.uverbs},
                         {"addresses", nlohmann::json::array()}};
      for (const auto& address : link.addresses) nic["addresses"].push_back(address.ToString());
      nic["gidIndex"] = link.gid_index ? nlohmann::json(*link.gid_index) : nlohmann::json(nullptr);
      nics.push_back(std::move(nic));
    }
  }
  return {{"container", handoff.container}, {"pod", handoff.pod},
          {"netns", handoff.netns},         {"nics", std::move(nics)},
          {"ncclConf", handoff.nccl_conf},  {"ucxConf", handoff.ucx_conf},
          {"topology", handoff.topology},   {"env", handoff.env}};
}

std::string TitleOf(const SandboxHandoff& handoff) {
  const std::string container = "container " + handoff.container;
  return (handoff.pod.empty() ? container : "pod " + handoff.pod + ", " + container) + ", " + handoff.netns;
}

void PrintHandoff(const Root& root, const SandboxHandoff& handoff) {
  std::printf("%s\n", TitleOf(handoff).c_str());
  std::vector<Row> rows = {{"INTERFACE", "RAIL", "DEVICE", "RDMA DEVICE", "GID", "ADDRESSES"}};
  for (const JournalEntry& entry : handoff.attachments) {
    for (const AttachedLink& link : entry.links) {
      rows.push_back({link.pod_name, link.rail.empty() ? "-" : link.rail, link.device,
                      link.rdma_device.empty() ? "-" : link.rdma_device, GidOf(link), AddressesOf(link)});
    }
  }
  PrintTable(rows);
  std::printf("%s%s\n%s", HandoffPath(root, handoff.container).c_str(),
              handoff.nccl_conf.empty() ? " is not there" : ":", handoff.nccl_conf.c_str());
  if (!handoff.ucx_conf.empty()) {
    std::printf("%s:\n%s", HandoffPath(root, handoff.container, kUcxConfName).c_str(),
                handoff.ucx_conf.c_str());
  }
  if (!handoff.env.empty())
    std::printf("variables of its containers:\n%s\n", Join(handoff.env, "\n").c_str());
  if (handoff.topology)
    std::printf("a topology file: %s\n", HandoffPath(root, handoff.container, kTopologyName).c_str());
}

// Of the many processes of a job one line for each value.
std::map<std::array<std::string, 4>, std::vector<std::string>> ByValue(
    const std::vector<Override>& overrides) {
  std::map<std::array<std::string, 4>, std::vector<std::string>> by_value;
  for (const Override& one : overrides)
    by_value[{one.variable, one.value, one.told, one.where}].push_back(std::to_string(one.pid));
  return by_value;
}

void PrintVerdict(const SandboxHandoff& handoff, const HandoffVerdict& verdict) {
  std::printf("%s: %s\n", TitleOf(handoff).c_str(),
              verdict.differences.empty() ? "as it was told" : "not as it was told");
  for (const std::string& difference : verdict.differences) std::printf("  %s\n", difference.c_str());
  for (const auto& [what, pids] : ByValue(verdict.overrides)) {
    const auto& [variable, value, told, where] = what;
    std::printf("  %s=%s of process %s wins over %s of %s\n", variable.c_str(), value.c_str(),
                Join(pids, ", ").c_str(), told.c_str(), where.c_str());
  }
}

nlohmann::json AsJson(const SandboxHandoff& handoff, const HandoffVerdict& verdict) {
  nlohmann::json json = AsJson(handoff);
  json["differences"] = verdict.differences;
  json["overrides"] = nlohmann::json::array();
  for (const Override& one : verdict.overrides) {
    json["overrides"].push_back({{"pid", one.pid},
                                 {"variable", one.variable},
                                 {"value", one.value},
                                 {"told", one.told},
                                 {"where", one.where}});
  }
  return json;
}

int ShowHandoff(const Root& root, const HandoffArguments& options) {
  const auto handoffs = FindHandoffs(root, options.which);
  if (!handoffs) return Complain(handoffs.error(), kFailed);
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& handoff : *handoffs) list.push_back(AsJson(handoff));
    PrintJson({{"handoffs", std::move(list)}});
    return kDone;
  }
  for (const auto& handoff : *handoffs) PrintHandoff(root, handoff);
  return kDone;
}

int Verify(const Root& root, const HandoffArguments& options) {
  const auto handoffs = FindHandoffs(root, options.which);
  if (!handoffs) return Complain(handoffs.error(), kFailed);
  LinuxKernel kernel(root);
  nlohmann::json list = nlohmann::json::array();
  bool well = true;
  for (const auto& handoff : *handoffs) {
    const auto verdict = VerifyHandoff(root, kernel, handoff);
    if (!verdict) return Complain(verdict.error(), kFailed);
    well = well && verdict->differences.empty();
    if (options.json) {
      list.push_back(AsJson(handoff, *verdict));
    } else {
      PrintVerdict(handoff, *verdict);
    }
  }
  if (options.json) PrintJson({{"handoffs", std::move(list)}});
  return well ? kDone : kFailed;
}

using Action = int (*)(const Root& root, const HandoffArguments& options);

void AddAction(CLI::App* handoff, const char* name, const char* help, Action action, const Root& root,
               int* status) {
  auto options = std::make_shared<HandoffArguments>();
  CLI::App* command = handoff->add_subcommand(name, help);
  command->add_flag("--json", options->json, "for scripts");
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
            "compare it with the kernel as of now, and with what the pod's processes have in their "
            "environment; exit status 1: something is not as it was told",
            Verify, root, status);
}

}  // namespace railhead::railctl
