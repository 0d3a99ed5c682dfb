#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "bench/bare_discovery.h"
#include "bench/node.h"
#include "deviceplugin/node/resources/allocate.h"
#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/resources/preferred.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "deviceplugin/services/discovery/read_node.h"
#include "deviceplugin/services/health/watch.h"
#include "deviceplugin/services/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/linux_kernel.h"

namespace {

// An interposed C function has no other place for its count.
std::atomic<int> fsyncs{0};

}  // namespace

// This program's own: the C library's is not used.
extern "C" __attribute__((visibility("default"))) int fsync(int fd) {
  ++fsyncs;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace railhead::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kState = "/var/lib/railhead";

class Stopwatch {
 public:
  [[nodiscard]] double Ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }
  [[nodiscard]] double Us() const { return Ms() * 1e3; }

 private:
  Clock::time_point start_ = Clock::now();
};

// Taking turns, the first round unmeasured.
Result<discovery::NodeReading> MeasureDiscovery(const Root& root, int rounds, Samples* samples) {
  LinuxKernel kernel(root);
  discovery::NodeReading last;
  for (int round = 0; round <= rounds; ++round) {
    const Stopwatch bare;
    const BareDiscovery read = RH_TRY(ReadBare(root));
    const double bare_ms = bare.Ms();
    const Stopwatch network;
    const NetNs host = RH_TRY(kernel.HostNetns());
    const auto route = RH_TRY(kernel.OpenRoute(host));
    RH_TRY(inventory::ReadHostNetwork(root, *route));
    const double network_ms = network.Ms();
    const Stopwatch plan;
    last = RH_TRY(discovery::ReadNode(root, kernel, {}, resources::DdpOfKernel(root)));
    const double plan_ms = plan.Ms();
    const Stopwatch topology;
    const topology::TopologyConfig config = RH_TRY(topology::ReadTopologyConfig(root));
    RH_TRY(topology::Topology::Read(root, *last.snapshot.inventory, config));
    const double topology_ms = topology.Ms();
    if (round == 0) continue;
    samples->Add("node", "bare reading", "discovery", "ms", bare_ms);
    samples->Add("node", "bare reading", "files read", "files", read.files);
    samples->Add("node", "railheadd", "discovery", "ms", plan_ms);
    samples->Add("node", "railheadd", "of it: the host's network", "ms", network_ms);
    samples->Add("node", "railheadd", "topology", "ms", topology_ms);
  }
  return last;
}

std::vector<std::string> IdsOfPool(const resources::ResourcePool& pool) {
  std::vector<std::string> ids;
  ids.reserve(pool.members.size());
  for (const resources::PoolMember& member : pool.members) ids.push_back(member.function.id);
  return ids;
}

// `count` devices in no order, as kubelet asks for them.
std::vector<std::string> Some(const std::vector<std::string>& all, std::size_t count, std::mt19937* random) {
  std::vector<std::string> ids;
  std::sample(all.begin(), all.end(), std::back_inserter(ids), static_cast<std::ptrdiff_t>(count), *random);
  std::shuffle(ids.begin(), ids.end(), *random);
  return ids;
}

// A whole Allocate, with its files in memory.
Result<void> MeasureAllocate(const Root& root, const resources::ResourcePool& pool, std::size_t count,
                             int rounds, const char* what, Samples* samples) {
  resources::Allocator allocator(root);
  std::mt19937 random(4711);  // NOLINT(cert-msc32-c,cert-msc51-cpp): each run alike
  const auto all = IdsOfPool(pool);
  for (int round = 0; round < rounds; ++round) {
    auto ids = Some(all, count, &random);
    const Stopwatch time;
    RH_TRY(allocator.Allocate(pool, std::move(ids)));
    samples->Add("node", "railheadd", what, "us", time.Us());
  }
  return {};
}

// What Allocate has to wait for by itself: one record on the disk.
Result<double> WriteDurably(const std::string& path, int round) {
  const std::string content = std::to_string(round) + std::string(250, 'x');
  const Stopwatch time;
  RH_TRY(WriteAtomic(path, content, Sync::kDurable));
  return time.Us();
}

Result<void> MeasureOnDisk(const Root& root, const resources::ResourcePool& pool, std::size_t count,
                           int rounds, const char* what, Samples* samples) {
  resources::Allocator allocator(root);
  std::mt19937 random(1147);  // NOLINT(cert-msc32-c,cert-msc51-cpp): each run alike
  const auto all = IdsOfPool(pool);
  const std::string other = root.Path(kState) + "/bench";
  for (int round = 0; round < rounds; ++round) {
    auto ids = Some(all, count, &random);
    samples->Add("node", "one durable write", what, "us", RH_TRY(WriteDurably(other, round)));
    fsyncs = 0;
    const Stopwatch time;
    RH_TRY(allocator.Allocate(pool, std::move(ids)));
    samples->Add("node", "railheadd, on disk", what, "us", time.Us());
    samples->Add("node", "calls of fsync", what, "calls", fsyncs);
  }
  return {};
}

Result<void> MeasureAllocations(const Root& root, const std::string& disk,
                                const resources::ResourcePool& pool, int rounds, Samples* samples) {
  RH_TRY(MeasureAllocate(root, pool, 1, rounds, "Allocate 1", samples));
  RH_TRY(MeasureAllocate(root, pool, 8, std::max(1, rounds / 8), "Allocate 8", samples));
  std::error_code error;
  std::filesystem::remove_all(root.Path(kState), error);
  // The folder itself must not be a link (netns/base/state_folder.h); what it lies in may be.
  const std::string above = root.Path("/var/lib");
  if (!error) std::filesystem::copy(above, disk, std::filesystem::copy_options::recursive, error);
  if (!error) std::filesystem::remove_all(above, error);
  if (!error) std::filesystem::create_directory_symlink(disk, above, error);
  if (!error) std::filesystem::create_directory(root.Path(kState), error);
  if (error) return FailSys(error.value(), "linking " + above + " to " + disk);
  RH_TRY(MeasureOnDisk(root, pool, 1, std::max(1, rounds / 4), "Allocate 1", samples));
  return MeasureOnDisk(root, pool, 8, std::max(1, rounds / 16), "Allocate 8", samples);
}

// How far each rail's PF is from the first `count` accelerators.
resources::PreferHints HintsOf(const topology::Topology& topology, std::size_t count) {
  resources::PreferHints hints;
  for (std::size_t nic = 0; nic < topology.nics().size(); ++nic) {
    auto& paths = hints.paths[topology.nics()[nic].address];
    for (std::size_t i = 0; i < std::min(count, topology.accelerators().size()); ++i)
      paths.push_back(topology.NicToAccelerator(nic, i));
  }
  return hints;
}

void MeasurePreference(const resources::ResourcePool& pool, const resources::PreferHints& hints,
                       std::size_t must, int size, const char* what, int rounds, Samples* samples) {
  std::mt19937 random(815);  // NOLINT(cert-msc32-c,cert-msc51-cpp): each run alike
  auto ids = IdsOfPool(pool);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(ids.begin(), ids.end(), random);  // kubelet's sets have no order
    const std::vector<std::string> required(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(must));
    const Stopwatch time;
    const auto chosen = Prefer(pool, ids, required, size, hints);
    const double us = time.Us();
    if (chosen.size() == static_cast<std::size_t>(size)) samples->Add("node", "railheadd", what, "us", us);
  }
}

// Two minutes of health checks, back to back. The first one, which reads everything, is not counted.
void MeasureHealth(const Root& root, const inventory::Inventory& inventory, Samples* samples) {
  ProbeWorkers probes;
  health::HealthWatch watch(root, health::HealthRules(), nullptr, probes);
  health::HealthTime now = health::HealthTime::Now();
  const auto is_attached = [](const std::string&) { return false; };
  (void)watch.Tick(inventory.functions, is_attached, now);
  const auto interval = watch.rules().interval;
  std::chrono::seconds passed{0};
  for (; passed < std::chrono::minutes(2); passed += interval) {
    now.wall += interval;
    now.steady += interval;
    const Stopwatch time;
    (void)watch.Tick(inventory.functions, is_attached, now);
    samples->Add("node", "railheadd", "look at health", "ms", time.Ms());
  }
}

}  // namespace

Result<void> MeasureNodeWork(const Root& root, const std::string& disk, const NodeRounds& rounds,
                             Samples* samples) {
  const discovery::NodeReading node = RH_TRY(MeasureDiscovery(root, rounds.discovery, samples));
  if (node.snapshot.pools.size() != 1 || node.snapshot.pools.front()->members.empty())
    return Fail(ErrorCode::kConflict, "the node below " + root.prefix() + " has no pool with VFs");
  const resources::ResourcePool& pool = *node.snapshot.pools.front();
  samples->Add("node", "railheadd", "devices", "VFs", static_cast<double>(pool.members.size()));
  RH_TRY(MeasureAllocations(root, disk, pool, rounds.allocations, samples));
  const topology::TopologyConfig config = RH_TRY(topology::ReadTopologyConfig(root));
  const auto topology = RH_TRY(topology::Topology::Read(root, *node.snapshot.inventory, config));
  MeasurePreference(pool, {}, 0, 1, "prefer 1", rounds.preferences, samples);
  MeasurePreference(pool, {}, 0, 8, "prefer 8", rounds.preferences, samples);
  MeasurePreference(pool, {}, 3, 8, "prefer 8, 3 given", rounds.preferences, samples);
  MeasurePreference(pool, HintsOf(*topology, 4), 0, 4, "prefer 4 near 4 GPUs", rounds.preferences, samples);
  MeasureHealth(root, *node.snapshot.inventory, samples);
  return {};
}

namespace {

constexpr std::chrono::seconds kLimit{10};

using Plugin = v1beta1::DevicePlugin::Stub;

// From before the call until the answer is there.
template <typename Request, typename Response>
Result<double> Timed(Plugin* plugin,
                     grpc::Status (Plugin::*call)(grpc::ClientContext*, const Request&, Response*),
                     const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  Response response;
  const auto start = std::chrono::steady_clock::now();
  const auto status = (plugin->*call)(&context, request, &response);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  if (status.ok()) return took.count();
  return Fail(ErrorCode::kConflict, "railheadd answers: " + status.error_message());
}

v1beta1::PreferredAllocationRequest Preference(const std::vector<std::string>& ids, int size, int must) {
  v1beta1::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : ids) container->add_available_device_ids(id);
  for (int i = 0; i < must; ++i) container->add_must_include_device_ids(ids[static_cast<std::size_t>(i)]);
  container->set_allocation_size(size);
  return request;
}

}  // namespace

Result<void> MeasureCalls(const std::string& socket, std::vector<std::string> ids, const NodeRounds& rounds,
                          Samples* samples) {
  const auto plugin = v1beta1::DevicePlugin::NewStub(
      grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
  std::mt19937 random(23);  // NOLINT(cert-msc32-c,cert-msc51-cpp): each run alike
  for (int i = 0; i < rounds.preferences; ++i) {
    std::shuffle(ids.begin(), ids.end(), random);
    for (const auto& [what, size, must] : {std::tuple("prefer 1", 1, 0), std::tuple("prefer 8", 8, 0),
                                           std::tuple("prefer 8, 3 given", 8, 3)}) {
      const double us =
          RH_TRY(Timed(plugin.get(), &Plugin::GetPreferredAllocation, Preference(ids, size, must)));
      samples->Add("node", "over gRPC", what, "us", us);
    }
  }
  for (int i = 0; i < rounds.allocations; ++i) {
    v1beta1::AllocateRequest request;
    request.add_container_requests()->add_device_ids(ids[random() % ids.size()]);
    samples->Add("node", "over gRPC", "Allocate 1", "us",
                 RH_TRY(Timed(plugin.get(), &Plugin::Allocate, request)));
  }
  return {};
}

}  // namespace railhead::bench
