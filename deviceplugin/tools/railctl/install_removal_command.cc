// railctl install check-removal: the pods that have to be deleted before Railhead is.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "deviceplugin/tools/install/removal.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"

namespace railhead::railctl {
namespace {

constexpr std::chrono::seconds kPageTimeout{30};

struct RemovalArguments {
  std::vector<std::string> resources;
  std::string fabric;
  Output output;
};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Those that the command line names, and those of the fabric's pools.
Result<std::vector<std::string>> ResourcesOf(const Root& root, const RemovalArguments& arguments) {
  std::vector<std::string> resources = arguments.resources;
  if (arguments.fabric.empty()) return resources;
  // Not as a file of root's: it comes from a ConfigMap, and kubelet makes that folder writable to all.
  // Nothing is done by it.
  const auto text = RH_TRY(ReadFile(root.Path(arguments.fabric)));
  if (!text) return resources;
  const Fabric fabric = RH_TRY(ParseFabric(*text, arguments.fabric));
  for (const Pool& pool : fabric.pools) resources.push_back(pool.resource);
  return resources;
}

Result<install::RemovalReport> ReadRemoval(const Root& root, const RemovalArguments& arguments) {
  const auto resources = RH_TRY(ResourcesOf(root, arguments));
  auto access = FindKubeAccess(
      root, {}, {Environment("KUBERNETES_SERVICE_HOST"), Environment("KUBERNETES_SERVICE_PORT")});
  if (!access) {
    access.error().hint = "run it in a pod whose service account may list pods";
    return Fail(std::move(access.error()));
  }
  KubeApi api = install::PodsApi(*access, kPageTimeout);
  return install::CheckRemoval(api, resources);
}

int CheckRemovalOf(const Root& root, const RemovalArguments& arguments) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // as connections to the API need it
  const auto report = ReadRemoval(root, arguments);
  if (!report) return Refuse({report.error()}, arguments.output, kFailed);
  arguments.output.Print(*report, install::RemovalAsText);
  return report->Ok() ? kDone : kFailed;
}

}  // namespace

void AddInstallRemovalCommand(CLI::App* install, const Root& root, int* status) {
  const auto arguments = std::make_shared<RemovalArguments>();
  CLI::App* command =
      install->add_subcommand("check-removal", "List the cluster's pods with NICs of Railhead");
  command->add_option("--resource", arguments->resources, "A resource of Railhead's besides railhead.io/*")
      ->type_name("NAME");
  command
      ->add_option("--fabric", arguments->fabric,
                   "A fabric.json, whose pools have further resources; none, if there is no such file")
      ->type_name("FILE");
  arguments->output.AddTo(command);
  help::Set(command,
            {.more = "Their DEL needs the CNI plugins: delete these pods before Railhead is removed. The "
                     "Helm chart runs it before helm uninstall.",
             .examples = {{"railctl install check-removal", "all pods with a resource railhead.io/*"},
                          {"railctl install check-removal --resource example.com/nic",
                           "also those with this resource"},
                          {"railctl install check-removal --fabric /etc/railhead/fabric.json",
                           "also those with a resource of its pools"}},
             .notes = "It runs in a pod whose service account may list pods.",
             .statuses = {{kDone, "no pod has NICs"},
                          {kFailed, "pods have NICs, or the fabric or the Kubernetes API cannot be read"}}});
  command->callback([&root, status, arguments] { *status = CheckRemovalOf(root, *arguments); });
}

}  // namespace railhead::railctl
