#include <sched.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "bench/node.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/discovery/read_node.h"
#include "deviceplugin/services/nic_metrics/collector.h"
#include "deviceplugin/services/nic_metrics/counter_source.h"
#include "deviceplugin/services/nic_metrics/nic_page.h"
#include "deviceplugin/services/nic_metrics/nic_sample.h"
#include "deviceplugin/services/nic_metrics/priority_counters.h"
#include "netns/base/node.h"
#include "netns/linux_kernel.h"

namespace railhead::bench {
namespace {

constexpr const char* kInPod = "lo";

struct Pods {
  std::vector<NetNs> namespaces;
  std::size_t nics = 0;
};

double CpuMs() {
  timespec now{};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// A namespace lives as long as its descriptor, which is its path, too.
Result<NetNs> MakeNamespace() {
  Result<NetNs> made = Fail(ErrorCode::kIo, "");
  std::thread([&made] {
    made = ::unshare(CLONE_NEWNET) == 0 ? NetNs::Current() : FailSys(errno, "making a network namespace");
  }).join();
  return made;
}

JournalEntry EntryOf(const std::string& boot_id, std::size_t number, const NetNs& ns,
                     const resources::PoolMember& member) {
  const std::string n = std::to_string(number);
  JournalEntry entry;
  entry.key = {"rails", "container" + n, "net1"};
  entry.boot_id = boot_id;
  entry.phase = Phase::kDone;
  entry.netns = "/proc/self/fd/" + std::to_string(ns.fd());
  entry.netns_inode = ns.inode();
  entry.cni_args = {{"K8S_POD_NAMESPACE", "jobs"}, {"K8S_POD_NAME", "worker-" + n}};
  AttachedDevice link;
  link.device = member.function.id;
  link.pf = member.function.pf.ToString();
  link.vf = member.function.vf_index;
  link.pod_name = kInPod;
  link.before.name = "vf" + n;
  link.addressing.addresses = {*IpPrefix::Parse("10.100.0.10/16")};
  entry.devices = {link};
  return entry;
}

Result<Pods> MakePods(const Root& root, const NodeSnapshot& node) {
  Pods pods;
  const std::string boot_id = RH_TRY(BootId(root));
  const Journal journal(root);
  for (const auto& pool : node.pools) {
    for (const resources::PoolMember& member : pool->members) {
      NetNs ns = RH_TRY(MakeNamespace());
      RH_TRY(journal.Write(EntryOf(boot_id, pods.nics++, ns, member)));
      pods.namespaces.push_back(std::move(ns));
    }
  }
  return pods;
}

// The kernel's answers about the same devices, and nothing else.
Result<void> ReadBare(const Pods& pods, const NetNs& host, const std::vector<std::string>& ports) {
  LinkCounters counters = RH_TRY(LinkCounters::Open(host));
  for (const std::string& port : ports) RH_TRY(counters.Read(port));
  for (const NetNs& ns : pods.namespaces) {
    LinkCounters one = RH_TRY(LinkCounters::Open(ns));
    RH_TRY(one.Read(kInPod));
  }
  return {};
}

Result<std::vector<std::string>> CheckReport(const nic_metrics::NicReport& report, const Pods& pods) {
  if (!report.problems.empty()) return Fail(report.problems.front());
  std::size_t reported = 0;
  std::vector<std::string> ports;
  for (const nic_metrics::NicSample& nic : report.nics) {
    if (nic.traffic && nic.owner) ++reported;
    if (!nic.owner) ports.push_back(nic.pf);
  }
  if (reported == pods.nics) return ports;
  return Fail(ErrorCode::kConflict, "of " + std::to_string(pods.nics) + " NICs in pods " +
                                        std::to_string(reported) + " are reported");
}

// The requests of a scrape that the kernel answers under RTNL and that take longest, one by one.
Result<void> AskPorts(const char* group, const nic_metrics::NicReport& report, const NetNs& host, int rounds,
                      Samples* samples) {
  const auto source = RH_TRY(nic_metrics::OpenKernelCounters(host));
  for (int round = 0; round <= rounds; ++round) {
    for (const nic_metrics::NicSample& port : report.nics) {
      if (port.vf || port.owner) continue;
      const auto start = std::chrono::steady_clock::now();
      RH_TRY(source->Link(port.pf));
      const auto link = std::chrono::steady_clock::now();
      RH_TRY(source->Driver(port.pf, nic_metrics::PriorityCounterNames(port.driver)));
      const auto driver = std::chrono::steady_clock::now();
      if (round == 0) continue;
      samples->Add(group, "one question", "asking for a PF and its VFs", "us",
                   std::chrono::duration<double, std::micro>(link - start).count());
      samples->Add(group, "one question", "asking the driver of a PF", "us",
                   std::chrono::duration<double, std::micro>(driver - link).count());
    }
  }
  return {};
}

Result<void> BesideScrapes(const char* group, LinuxKernel& kernel, nic_metrics::NicCollector* collector,
                           const Advertisement& advertisement, int rounds, Samples* samples) {
  const auto scrape = [&]() -> Result<void> {
    nic_metrics::NicPageSources sources;
    sources.report = collector->Collect(advertisement);
    if (!sources.report.problems.empty()) return Fail(sources.report.problems.front());
    if (!NicPage(sources, ExpositionFormat::kText).empty()) return {};
    return Fail(ErrorCode::kConflict, "the page is empty");
  };
  // The first Collect() reads the journal.
  const nic_metrics::NicReport report = collector->Collect(advertisement);
  const NetNs host = RH_TRY(kernel.HostNetns());
  RH_TRY(AskPorts(group, report, host, rounds, samples));
  return MeasureRtnl(kernel, group, rounds, scrape, samples);
}

// Fails unless the page covers NICs in pods and counters of RDMA devices, as on a real node.
Result<void> CheckReal(const nic_metrics::NicReport& report) {
  if (!report.problems.empty()) return Fail(report.problems.front());
  int pods = 0;
  int rdma = 0;
  for (const nic_metrics::NicSample& nic : report.nics) {
    if (nic.owner && nic.traffic) ++pods;
    if (nic.owner && !nic.rdma.empty()) ++rdma;
  }
  if (pods > 0 && rdma > 0) return {};
  return Fail(ErrorCode::kConflict, std::to_string(pods) + " NICs in pods are reported, with counters of " +
                                        std::to_string(rdma) + " RDMA devices");
}

}  // namespace

Result<void> MeasureRealNics(const Root& root, int rounds, Samples* samples) {
  LinuxKernel kernel{root};
  const discovery::NodeReading node = RH_TRY(discovery::ReadNode(root, kernel, ConfigSource{}));
  const Advertisement advertisement{node.snapshot.pools, nullptr};
  nic_metrics::NicCollector collector(root, kernel, nic_metrics::OpenKernelCounters);
  RH_TRY(CheckReal(collector.Collect(advertisement)));
  return BesideScrapes("guest-rtnl", kernel, &collector, advertisement, rounds, samples);
}

Result<void> MeasureNics(const Root& root, int rounds, Samples* samples) {
  LinuxKernel kernel{root};
  const NetNs host = RH_TRY(kernel.HostNetns());
  const discovery::NodeReading node = RH_TRY(discovery::ReadNode(root, kernel, ConfigSource{}));
  const Pods pods = RH_TRY(MakePods(root, node.snapshot));
  const Advertisement advertisement{node.snapshot.pools, nullptr};
  nic_metrics::NicCollector collector(root, kernel, nic_metrics::OpenKernelCounters);
  for (int round = 0; round <= rounds; ++round) {
    const double cpu = CpuMs();
    nic_metrics::NicPageSources sources;
    sources.report = collector.Collect(advertisement);
    const double collected = CpuMs();
    const std::string page = NicPage(sources, ExpositionFormat::kText);
    const double written = CpuMs();
    const auto ports = RH_TRY(CheckReport(sources.report, pods));
    const double before = CpuMs();
    RH_TRY(ReadBare(pods, host, ports));
    const double bare = CpuMs() - before;
    if (round == 0) continue;
    samples->Add("node", "bare reading", "/metrics/nics, CPU", "ms", bare);
    samples->Add("node", "railheadd", "/metrics/nics, CPU", "ms", written - cpu);
    samples->Add("node", "railheadd", "of it: writing the page", "ms", written - collected);
    samples->Add("node", "railheadd", "size of /metrics/nics", "KiB",
                 static_cast<double>(page.size()) / 1024);
  }
  return BesideScrapes("rtnl", kernel, &collector, advertisement, rounds, samples);
}

}  // namespace railhead::bench
