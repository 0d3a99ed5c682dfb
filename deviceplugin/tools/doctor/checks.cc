#include "deviceplugin/tools/doctor/checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

constexpr std::array kChecks = {
    Check{"fabric.valid", "fabric.json is there and right", "without it no part of Railhead knows the rails",
          CheckFabric},
    Check{"fabric.rails", "every rail of fabric.json has a PF on this node",
          "a pod that asks for one VF per rail gets two of one rail, or is not scheduled", CheckRails},
    Check{"fabric.index", "this node has addresses of its rails, and its index where they come by it",
          "else no pod gets an address of these rails, and ADD fails", CheckIndex},
    Check{"fabric.cabling", "every rail is connected to one of its expectedSwitches",
          "traffic of a rail on a wrong leaf switch crosses the spines, or reaches no other node",
          CheckCabling},
    Check{"fabric.probes", "probes of the rails are signed",
          "else a pod can forge them, and have a healthy rail taken out of use", CheckProbes},
    Check{"rdma.netns-mode", "the RDMA namespace mode is the one that fabric.json states",
          "in shared mode a pod sees the RDMA devices of all others; the two modes cannot be mixed in a "
          "cluster",
          CheckRdmaMode},
    Check{"rdma.port", "the rails' RDMA ports are ACTIVE",
          "NCCL silently skips a port that is not ACTIVE, and trains over TCP", CheckPorts},
    Check{"rdma.gid-table", "the rails' GID tables have RoCE v2 entries, at the same places",
          "NCCL has one GID index for all devices of a process", CheckGids},
    Check{"rdma.node-guid", "each RDMA device has a node GUID of its own",
          "programs tell devices by it; a VF whose PF never set its MAC can have none", CheckNodeGuids},
    Check{"pci.acs",
          "no bridge between an accelerator and a NIC on one switch redirects peer-to-peer traffic",
          "GPUDirect RDMA then goes up to the root complex and back, or fails", CheckAcs},
    Check{"pci.iommu", "the IOMMU passes the rails' NICs and the accelerators through",
          "translation costs bandwidth, and the kernel switches ACS redirection on with it", CheckIommu},
    Check{"gpu.direct", "the NICs can read and write GPU memory",
          "without nvidia_peermem or dma-buf NCCL copies through host memory, and has no PXN",
          CheckGpuDirect},
    Check{"gpu.ids", "railheadd knows the GPUs of NVIDIA's MIG slices",
          "late binding takes the NIC next to a pod's GPU, and only NVIDIA's library knows a slice's GPU",
          CheckGpuIds},
    Check{"net.mtu", "the PFs' MTU is enough for their rails, and for RoCE's largest",
          "RoCE uses the largest of 1024, 2048, 4096 bytes that fits into the MTU", CheckMtu},
    Check{"net.routes", "no rail's route takes the traffic of the cluster network",
          "a pod reaches services and other pods by a default route, and a rail's route is more specific",
          CheckRoutes},
    Check{"net.arp", "the host answers ARP for a rail on that rail only",
          "with several rails in one host Linux answers on any, and drops what comes back elsewhere",
          CheckArp},
    Check{"net.managed", "no network manager of the host configures the rails' VFs",
          "a VF with an address of DHCP is the host's, and no pod gets it; managers also rename VFs",
          CheckManaged},
    Check{"qos.dscp", "the ports sort packets by DSCP, and know that of their rail's traffic class",
          "else RoCE travels in the default priority, without PFC", CheckDscp},
    Check{"qos.pfc", "the priority of the rail's traffic class is lossless",
          "RoCE loses much of its bandwidth with few lost packets", CheckPfc},
    Check{"qos.ets", "the priority of the rail's traffic class has bandwidth of its own",
          "a class without bandwidth starves when others send", CheckEts},
    Check{"qos.ecn", "congestion control is on for that priority",
          "without it PFC stops whole links, not the senders that are too fast", CheckEcn},
    Check{"sriov.vfs", "the rails' PFs have VFs", "a PF without VFs gives nothing to pods", CheckVfCount},
    Check{"sriov.ari", "PFs with more than seven VFs are on ARI-capable ports",
          "else the VFs need further bus numbers, which not every firmware reserves", CheckAri},
    Check{"sriov.vf-order", "RDMA devices are in the order of the VFs",
          "NCCL before 2.29.7 numbers NICs in that order, and ranks of different nodes must agree",
          CheckVfOrder},
    Check{"sriov.bandwidth", "whether VFs share the bandwidth of their PF",
          "NCCL takes each VF for a whole port", CheckBandwidth},
    Check{"sriov.spoofchk", "the rails' VFs send from their own MAC only",
          "else a pod with CAP_NET_RAW answers for the addresses of others, each time as another host",
          CheckSpoofing},
    Check{"node.kernel", "the kernel has what Railhead asks of it",
          "an older one refuses settings, or does not say what a pod has changed", CheckKernel},
    Check{"node.memlock", "container runtimes may lock memory without limit",
          "containers inherit the limit, and ibv_reg_mr fails with ENOMEM beyond it", CheckMemlock},
    Check{"node.modules", "the kernel modules that RDMA needs are loaded",
          "containers get no device nodes else", CheckModules},
    Check{"node.firmware", "NICs of one kind have one firmware and driver",
          "ranks wait for the slowest NIC, and faults of one firmware look like faults of one rail",
          CheckFirmware},
    Check{"node.files", "only root can change the files by which Railhead acts as root",
          "who can write to fabric.json decides what pods may; Railhead refuses such files, and ADD fails",
          CheckFiles},
    Check{"node.records", "what Railhead has on record of this node is whole",
          "a journal entry that cannot be read keeps its devices from all pods, and its pod from ending",
          CheckRecords},
    Check{"runtime.cdi", "the container runtime reads Railhead's CDI specs",
          "else containers start without device nodes and without nccl.conf, in silence", CheckCdi},
    Check{"runtime.device-plugins", "no other device plugin hands out RDMA or SR-IOV devices",
          "two plugins give one VF to two pods", CheckPlugins},
    Check{"runtime.cni", "no CNI configuration of the node takes the rails' devices",
          "what takes a PF takes its rail from every pod; macvlan shifts the GID indices of all", CheckCni},
    Check{"runtime.kubelet", "the directory of pods that railheadd looks into is kubelet's",
          "else every pod looks deleted, and the devices of ended pods are not restored", CheckKubelet},
    Check{"runtime.netns", "namespaces that the host makes later are seen",
          "without mount propagation they look deleted, and railheadd never restores the devices in them",
          CheckNetns},
    Check{"runtime.selinux", "SELinux lets containers read what Railhead mounts into them",
          "NCCL skips an nccl.conf that it cannot read, and says nothing", CheckSelinux},
    Check{"runtime.net-admin", "no pod with NICs has CAP_NET_ADMIN in the host's user namespace",
          "such a pod reaches links of the host through its eth0, those of other pods' NICs among them",
          CheckNetAdmins},
};

}  // namespace

std::span<const Check> AllChecks() {
  return kChecks;
}

namespace {

constexpr std::size_t kShown = 3;

}  // namespace

Verdict& Verdict::Add(Status status, std::string text, std::string fix) {
  observations_.push_back({status, std::move(text), std::move(fix)});
  return *this;
}

Status Verdict::status() const {
  Status worst = Status::kSkipped;
  for (const Observation& one : observations_) worst = std::max(worst, one.status);
  return worst;
}

std::string Verdict::Found() const {
  std::vector<std::string> texts;
  for (const Observation& one : observations_) {
    const bool known = Contains(texts, one.text);
    if (one.status == status() && !known) texts.push_back(one.text);
  }
  std::string found;
  for (std::size_t i = 0; i < texts.size() && i < kShown; ++i) {
    if (i > 0) found += "; ";
    found += texts[i];
  }
  if (texts.size() > kShown) found += "; and " + std::to_string(texts.size() - kShown) + " more";
  return found;
}

std::string Verdict::Fix() const {
  for (const Observation& one : observations_) {
    if (one.status == status() && !one.fix.empty()) return one.fix;
  }
  return {};
}

namespace {

constexpr std::array kWorstFirst = {Status::kFailure, Status::kWarning, Status::kNote, Status::kSkipped,
                                    Status::kOk};
constexpr std::size_t kStatusWidth = 9;
constexpr std::size_t kIdWidth = 24;

bool Matches(std::string_view id, std::string_view wanted) {
  return id == wanted || (id.size() > wanted.size() && id.starts_with(wanted) && id[wanted.size()] == '.');
}

// An error unless each of `wanted` is the id of a check, or begins some.
Result<void> MustExist(const std::vector<std::string>& wanted) {
  for (const std::string& one : wanted) {
    const auto checks = AllChecks();
    if (std::ranges::any_of(checks, [&](const Check& check) { return Matches(check.id, one); })) continue;
    std::vector<std::string> ids;
    for (const Check& check : checks) ids.emplace_back(check.id);
    const auto near = Nearest(one, ids);
    return Fail(ErrorCode::kInvalid, "unknown check " + one,
                near ? "did you mean " + *near + "?" : "all of them: railctl doctor --list");
  }
  return {};
}

bool IsIn(std::string_view id, const std::vector<std::string>& list) {
  return std::ranges::any_of(list, [&](const std::string& one) { return Matches(id, one); });
}

std::string Padded(std::string_view text, std::size_t width) {
  std::string padded(text);
  padded.resize(std::max(width, text.size() + 1), ' ');
  return padded;
}

std::string FindingAsText(const Finding& finding) {
  const Status status = finding.verdict.status();
  std::string text = Padded(WordOf(status), kStatusWidth) + Padded(finding.check->id, kIdWidth) +
                     finding.verdict.Found() + "\n";
  if (status < Status::kNote) return text;
  const std::string indent(kStatusWidth, ' ');
  if (status > Status::kNote) text.append(indent).append("why: ").append(finding.check->why).append("\n");
  if (const std::string fix = finding.verdict.Fix(); !fix.empty())
    text.append(indent).append("fix: ").append(fix).append("\n");
  return text;
}

std::string Milliseconds(double elapsed) {
  return std::to_string(std::lround(elapsed)) + " ms";
}

}  // namespace

Result<std::vector<const Check*>> SelectChecks(const std::vector<std::string>& only,
                                               const std::vector<std::string>& skip) {
  RH_TRY(MustExist(only));
  RH_TRY(MustExist(skip));
  std::vector<const Check*> selected;
  for (const Check& check : AllChecks()) {
    if ((only.empty() || IsIn(check.id, only)) && !IsIn(check.id, skip)) selected.push_back(&check);
  }
  return selected;
}

Status Report::Worst() const {
  Status worst = Status::kSkipped;
  for (const Finding& finding : findings) worst = std::max(worst, finding.verdict.status());
  return worst;
}

int Report::Count(Status status) const {
  return static_cast<int>(std::ranges::count_if(
      findings, [&](const Finding& finding) { return finding.verdict.status() == status; }));
}

Report RunChecks(const NodeFacts& facts, const std::vector<const Check*>& checks) {
  Report report;
  report.node = facts.node;
  for (const Check* check : checks) report.findings.push_back({check, check->judge(facts)});
  return report;
}

std::vector<std::pair<std::string, int>> Report::Counts() const {
  std::vector<std::pair<std::string, int>> counts;
  counts.reserve(kWorstFirst.size());
  for (const Status status : kWorstFirst) counts.emplace_back(WordOf(status), Count(status));
  return counts;
}

std::string ReportAsText(const Report& report) {
  std::string text;
  for (const Status status : kWorstFirst) {
    for (const Finding& finding : report.findings) {
      if (finding.verdict.status() == status) text += FindingAsText(finding);
    }
  }
  std::vector<std::string> counts;
  for (const auto& [status, count] : report.Counts()) counts.push_back(status + " " + std::to_string(count));
  return text + "\n" + std::to_string(report.findings.size()) +
         (report.findings.size() == 1 ? " check: " : " checks: ") + Join(counts, ", ") + "; " +
         Milliseconds(report.elapsed_ms) + "\n";
}

}  // namespace railhead::doctor
