// railctl fabric suggest: a fabric.json from what this node shows, or from what many nodes have shown.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/fabric_follow/fabric_errors.h"
#include "deviceplugin/services/fabric_follow/follower.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/fabric_suggest/observe.h"
#include "deviceplugin/tools/fabric_suggest/report.h"
#include "deviceplugin/tools/fabric_suggest/suggest.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/print.h"
#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/linux_kernel.h"

namespace railhead::railctl {
namespace {

// Switches send LLDP frames every 30 seconds (IEEE 802.1AB-2016 9.2.5.7, msgTxInterval).
constexpr int kLldpSeconds = 35;
constexpr int kMostLldpSeconds = 600;

struct SuggestArguments {
  std::vector<std::string> files;
  std::optional<std::string> from;  // "": no fabric is kept
  std::string supernet;
  std::optional<int> rail_prefix;
  std::string gateway;
  bool all_pfs = false;
  std::optional<int> listen;
  Output output;
};

Result<fabric_suggest::SuggestOptions> OptionsOf(const SuggestArguments& arguments) {
  fabric_suggest::SuggestOptions options;
  if (!arguments.supernet.empty()) {
    options.supernet = IpPrefix::Parse(arguments.supernet);
    if (!options.supernet) {
      return Fail(ErrorCode::kInvalid,
                  "--supernet '" + arguments.supernet + "' is not an address with prefix length",
                  "for example 10.104.0.0/13");
    }
  }
  options.rail_prefix = arguments.rail_prefix;
  options.gateway = Gateway::Parse(arguments.gateway);
  options.all_pfs = arguments.all_pfs;
  if (arguments.listen && !arguments.files.empty()) {
    return Fail(ErrorCode::kInvalid,
                "--listen is for this node, and FILE names what other nodes have observed",
                "give --listen to the `railctl fabric suggest -o json` of each node");
  }
  RH_TRY(fabric_suggest::CheckOptions(options));
  return options;
}

// The files that can be read count; the others are named.
fabric_suggest::Gathered ReadObservations(const std::vector<std::string>& files) {
  fabric_suggest::Gathered all;
  for (const std::string& file : files) {
    if (file == "-") {
      fabric_suggest::GatherObservations(std::cin, "standard input", &all);
      continue;
    }
    std::ifstream in(file, std::ios::binary);
    if (in) {
      fabric_suggest::GatherObservations(in, file, &all);
    } else {
      all.unread.push_back({file, SysError(errno, "opening it").message});
    }
  }
  return all;
}

Result<fabric_suggest::Gathered> ObserveThisNode(const Root& root, int listen) {
  LinuxKernel kernel(root);
  if (listen > 0)
    SayProgress("observing PFs; listening for LLDP frames for at most " + std::to_string(listen) +
                " seconds");
  auto observed = RH_TRY(fabric_suggest::Observe(root, kernel, {.listen = std::chrono::seconds(listen)}));
  return fabric_suggest::Gathered{{std::move(observed)}, {}};
}

// Where the present fabric is: the wanted one, if railheadd follows it. The one in force may lack changes
// that wait for pods to end.
std::string PresentPath(const Root& root, fabric_suggest::Gathered* gathered) {
  const auto followed = fabric_follow::kFollowFile.Read(root);
  if (!followed || !*followed || !(*followed)->refused.empty()) return root.Path(kFabricPath);
  std::string wanted = root.Path((*followed)->file);
  if (const auto text = ReadFile(wanted); text && *text) return wanted;
  if (!(*followed)->pending.empty()) {
    gathered->unread.push_back(
        {(*followed)->file,
         "it is not on the host, and the fabric in force lacks changes of it that wait "
         "for pods to end; run this in railheadd's container, or give --from"});
  }
  return root.Path(kFabricPath);
}

// Why the fabric cannot be kept; nullopt: it can.
std::optional<Error> WhyNotKept(const std::string& text, const std::string& path) {
  auto errors = fabric_follow::ErrorsInFabric(text, path);
  if (!errors.empty()) {
    errors.front().hint = "railctl config check " + path + " shows every error in it";
    return std::move(errors.front());
  }
  // What follows from a fabric with groups for one node says nothing about the others.
  const auto fabric = ParseFabric(text, path);
  if (!fabric || !fabric->of_node) return std::nullopt;
  return Error{
      ErrorCode::kInvalid,
      path + ": /node: it is what node '" + fabric->of_node->name + "' has of a fabric with groups of nodes",
      "give that fabric with --from: kubectl get configmap shows it", 0};
}

// The fabric to be kept; "": none. Unless it was asked for, it may be absent, or wrong.
Result<std::string> ReadPresent(const Root& root, const SuggestArguments& arguments,
                                fabric_suggest::Gathered* gathered) {
  if (arguments.from && arguments.from->empty()) return std::string();
  const std::string path = arguments.from ? *arguments.from : PresentPath(root, gathered);
  const auto text = RH_TRY(ReadFile(path));
  if (!text && !arguments.from) return std::string();
  if (!text) return Fail(ErrorCode::kInvalid, "--from " + path + ": no such file");
  auto why = WhyNotKept(*text, path);
  if (!why) return *text;
  if (arguments.from) return Fail(*std::move(why));
  gathered->unread.push_back({path, why->message});
  return std::string();
}

// Of this node, only topology.json can be wrong.
int StatusOfObserving(const Error& error) {
  return error.code == ErrorCode::kMalformed || error.code == ErrorCode::kInvalid ? kBadConfig : kFailed;
}

// Why nothing is suggested; nullopt: a fabric is.
std::optional<Error> WhyNone(const fabric_suggest::SuggestReport& report) {
  if (report.observations.empty()) {
    return Error{ErrorCode::kInvalid, "the files have no observation of a node",
                 "each has to be what `railctl fabric suggest -o json` printed", 0};
  }
  if (!report.fabric.empty()) return std::nullopt;
  return Error{ErrorCode::kNotFound, "no PF with RDMA over Ethernet can carry a rail",
               "railctl fabric suggest -o json shows each PF; railctl topology shows NICs without RDMA", 0};
}

int SuggestFabric(const Root& root, const SuggestArguments& arguments) {
  auto options = OptionsOf(arguments);
  if (!options) return Complain(options.error(), kUsage);
  auto gathered = arguments.files.empty() ? ObserveThisNode(root, arguments.listen.value_or(kLldpSeconds))
                                          : ReadObservations(arguments.files);
  if (!gathered) return Complain(gathered.error(), StatusOfObserving(gathered.error()));
  auto present = ReadPresent(root, arguments, &*gathered);
  if (!present) return Complain(present.error(), kBadConfig);
  options->present = *std::move(present);
  fabric_suggest::Suggestion suggestion = Suggest(gathered->observations, *options);
  const auto errors = suggestion.fabric.empty()
                          ? std::vector<Error>{}
                          : fabric_follow::ErrorsInFabric(suggestion.fabric, "the suggested fabric.json");
  if (!errors.empty()) return Refuse(errors, arguments.output, kFailed);
  const fabric_suggest::SuggestReport report{std::move(gathered->observations), std::move(gathered->unread),
                                             std::move(suggestion.fabric), std::move(suggestion.guesses),
                                             std::move(suggestion.contradictions)};
  arguments.output.Print(report, [](const auto& it) { return it.fabric; });
  if (arguments.output.is_text()) (void)std::fputs(RemarksOf(report).c_str(), stderr);
  if (const auto why = WhyNone(report)) return Complain(*why, kFailed);
  return report.unread.empty() && report.contradictions.empty() ? kDone : kFailed;
}

}  // namespace

void AddFabricCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* fabric = app->add_subcommand("fabric", "Suggest a fabric.json");
  fabric->require_subcommand(1);
  const auto arguments = std::make_shared<SuggestArguments>();
  CLI::App* command =
      fabric->add_subcommand("suggest", "Print a fabric.json from what this node or many nodes show");
  command->add_option(
      "FILE", arguments->files,
      "what `railctl fabric suggest -o json` printed on the nodes, one or more in a file; -: standard input");
  command->add_option("--from", arguments->from,
                      "fabric.json that is kept, with what it lacks added; \"\": none; default: the one that "
                      "railheadd follows, or /etc/railhead/fabric.json, if it is there");
  command->add_option("--supernet", arguments->supernet,
                      "divide this prefix among the rails: the first rail gets the first subnet");
  command->add_option("--rail-prefix", arguments->rail_prefix,
                      "with --supernet: prefix length of a rail's subnet; without it the largest that fit");
  command
      ->add_option("--gateway", arguments->gateway,
                   "address of a subnet that is its gateway, where no host has a route: first or last")
      ->check(CLI::IsMember({"first", "last"}));
  command->add_flag("--all-pfs", arguments->all_pfs,
                    "also PFs that share no PCIe switch with an accelerator while others do");
  command
      ->add_option(
          "--listen", arguments->listen,
          "without FILE: seconds to wait for LLDP frames on PFs of which railheadd has no neighbor; 0: "
          "not at all")
      ->check(CLI::Range(0, kMostLldpSeconds))
      ->default_str(std::to_string(kLldpSeconds));
  arguments->output.AddTo(command);
  help::Set(
      command,
      {.more =
           "It changes nothing. Each guess is a line on standard error, with its reason and certainty; so is "
           "each contradiction between nodes.",
       .examples = {{"railctl fabric suggest >fabric.json", "of this node; guesses on standard error"},
                    {"railctl fabric suggest -o json >$(hostname).json", "what one of many nodes shows"},
                    {"railctl fabric suggest gpu-*.json >fabric.json", "of many nodes, which are compared"},
                    {"railctl fabric suggest gpu-*.json --from fabric.json",
                     "after nodes were added, which get numbers; nothing else changes"},
                    {"railctl fabric suggest --supernet 10.104.0.0/13 --rail-prefix 16",
                     "subnets for 8 rails"}},
       .notes = "Run it as root on the host. It listens for LLDP frames and sends nothing.",
       .statuses = {
           {kDone, "nothing contradicts the fabric"},
           {kFailed, "nodes contradict each other, a FILE cannot be read, or no PF with RDMA was found"},
           {kBadConfig, "topology.json or the fabric of --from is invalid"}}});
  command->callback([&root, status, arguments] { *status = SuggestFabric(root, *arguments); });
}

}  // namespace railhead::railctl
