#include "deviceplugin/tools/doctor/read_facts.h"

#include <chrono>
#include <utility>

#include "cni/fabric/node_index.h"
#include "cni/protocol/cni_args.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/conflict_log.h"
#include "cni/state/displaced_names.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "ipam/store/held_addresses.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/gid/gid_table.h"
#include "netns/nl/devlink_versions.h"
#include "netns/nl/rdma_device_order.h"
#include "netns/nl/vf_list.h"

namespace railhead::doctor {
namespace {

void ReadTheFabric(const Root& root, NodeFacts* facts) {
  auto fabric = ReadFabric(root);
  if (!fabric) {
    facts->fabric_error = fabric.error();
    facts->fabric = Fact<Fabric>::Unknown(fabric.error().message);
  } else if (!*fabric) {
    facts->fabric = Fact<Fabric>::Unknown(std::string("no such file: ") + kFabricPath);
  } else {
    facts->fabric = **std::move(fabric);
  }
  facts->sriovdp_config = Exists(root.Path(kSriovdpConfigPath));
}

Result<std::vector<NodeIndexProblem>> ReadIndexProblems(const Root& root, const NodeFacts& facts) {
  if (!facts.fabric) return Fail(ErrorCode::kNotFound, facts.fabric.why());
  const bool claims = facts.fabric->index_from_kubernetes && facts.fabric->UsesIndices();
  if (!claims || (!facts.fabric->nodes.empty() && !facts.fabric->IndexOf(facts.node)))
    return std::vector<NodeIndexProblem>{};
  const NodeIndex index = RH_TRY(kNodeIndexFile.Read(root)).value_or(NodeIndex{});
  return index.Problems(facts.node, RH_TRY(ReadNodeIndexClock(root)));
}

Fact<lldp::LldpReport> ReadLldpReport(const Root& root) {
  auto report = Fact<lldp::LldpReport>::Of(lldp::kLldpFile.Read(root),
                                           "railheadd, which listens, has not run since the boot");
  if (report && lldp::kLldpFile.IsOld(*report, std::chrono::system_clock::now()))
    return Fact<lldp::LldpReport>::Unknown("railheadd, which listens, does not run");
  return report;
}

Result<RecordFacts> ReadRecords(const Root& root) {
  RecordFacts records;
  JournalScan journal = RH_TRY(Journal(root).Scan());
  records.unreadable = std::move(journal.unreadable);
  for (const JournalEntry& entry : journal.entries) {
    const std::string tenant = PodNamespace(entry.cni_args);
    if (!tenant.empty() && !entry.devices.empty()) records.tenants.insert(tenant);
    const auto uid = entry.cni_args.find("K8S_POD_UID");
    if (uid != entry.cni_args.end() && !entry.devices.empty())
      records.pods[uid->second] = PodName(entry.cni_args);
  }
  for (const std::string& device : RH_TRY(ListDisplacedDevices(root))) {
    const auto own = RH_TRY(ReadDisplacedNames(root, device));
    if (own) records.displaced[device] = own->name;
  }
  for (const std::string& name : RH_TRY(ListCdiRecords(root))) {
    if (!RH_TRY(IsCdiSpecIntact(root, name))) records.altered_specs.push_back(name);
  }
  if (const auto drains = health::ReadDrains(root); !drains) records.drains_error = drains.error();
  records.conflict_sources = RH_TRY(ListConflictSources(root, BoottimeNow() - std::chrono::hours(1)));
  if (const auto held = ipam::ListHeld(root); !held) records.store_error = held.error();
  return records;
}

Fact<bool> ReadProbesSigned(const Root& root) {
  const auto report = reachability::ReadReachabilityReport(root);
  if (!report) return Fact<bool>::Unknown(Describe(report.error()));
  if (!*report) return Fact<bool>::Unknown("railheadd has not probed since the boot");
  return (*report)->authentic;
}

}  // namespace

KernelQuestions QuestionsFor(const Root& root) {
  KernelQuestions kernel;
  if (!root.prefix().empty()) {
    const auto refuse = [](auto...) {
      return Fail(ErrorCode::kUnsupported,
                  "RAILHEAD_ROOT is set, and the kernel answers for this machine only");
    };
    kernel.dcb = refuse;
    kernel.rdma_order = refuse;
    kernel.vfs = refuse;
    kernel.versions = refuse;
    return kernel;
  }
  kernel.dcb = ReadDcb;
  kernel.rdma_order = RdmaDeviceOrder;
  kernel.vfs = ListVfs;
  kernel.versions = DevlinkRunningVersions;
  return kernel;
}

NodeFacts ReadFacts(const Root& root, const KernelQuestions& kernel) {
  NodeFacts facts;
  facts.node = NodeName(root).value_or("");
  facts.kernel = ReadAttribute(root.Path("/proc/sys/kernel/osrelease")).value_or(std::nullopt).value_or("");
  ReadTheFabric(root, &facts);
  facts.index_problems = Fact<std::vector<NodeIndexProblem>>::Of(ReadIndexProblems(root, facts));
  ReadRdma(root, kernel, &facts);
  ReadPfs(root, kernel, &facts);
  ReadPci(root, &facts);
  ReadProcesses(root, &facts);
  facts.lldp_report = ReadLldpReport(root);
  facts.open_files = ReadOpenFiles(root);
  facts.records = Fact<RecordFacts>::Of(ReadRecords(root));
  facts.net_admins = facts.records ? ReadNetAdmins(root, facts.records->pods)
                                   : Fact<std::set<std::string>>::Unknown(facts.records.why());
  facts.probes_signed = ReadProbesSigned(root);
  ReadGpuDriver(root, &facts);
  ReadRuntime(root, &facts);
  facts.managed = ReadManaged(root, facts.pfs);
  ReadSelinux(root, &facts);
  return facts;
}

}  // namespace railhead::doctor
