#include "deviceplugin/tools/railctl/handoff_report.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "cni/attachment/pod_network.h"
#include "cni/attachment/verify.h"
#include "cni/nccl/nccl_files.h"
#include "cni/protocol/pod_args.h"
#include "cni/state/cdi_spec.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

bool HasHandoff(const JournalEntry& entry) {
  return entry.handoff_required ||
         std::any_of(entry.links.begin(), entry.links.end(), [](const auto& link) { return link.handoff; });
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
  auto network = RH_TRY(PodNetwork::OpenOf(kernel, entry));
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
    for (const AttachedLink& link : entry.links) {
      if (!link.handoff || !link.gid_index) continue;
      if (auto spec = RH_TRY(ReadCdiSpec(root, link.KubeletId()))) return std::move(spec->env);
    }
  }
  return std::vector<std::string>();
}

Result<void> ReadTold(const Root& root, SandboxHandoff& handoff) {
  const std::string& container = handoff.container;
  handoff.nccl_conf = RH_TRY(ReadFile(HandoffPath(root, container))).value_or("");
  handoff.ucx_conf = RH_TRY(ReadFile(HandoffPath(root, container, kUcxConfName))).value_or("");
  handoff.topology = Exists(HandoffPath(root, container, kTopologyName));
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
  const auto pod = RH_TRY(OpenPodOf(kernel, handoff.attachments.front()));
  if (!pod) return verdict;
  verdict.overrides = RH_TRY(FindOverrides(*pod, {{kNcclConfName, handoff.nccl_conf},
                                                  {kUcxConfName, handoff.ucx_conf},
                                                  {"the CDI spec", Join(handoff.env, "\n")}}));
  return verdict;
}

}  // namespace railhead
