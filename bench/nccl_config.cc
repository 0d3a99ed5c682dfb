// railhead_nccl_config_bench DIRECTORY PROGRAMS ROUNDS FILE: what the NCCL configuration of eight VFs costs
// beside the kernel; bench/host.sh uses it.
//
// It runs ADD in this process, on the tests' kernel. Of the phases that the plugin logs, it takes only
// `nccl`. That phase makes files from known facts, and asks the kernel for a route and a name. Where ADD
// changes something, the tests' kernel takes its time to follow in a made-up sysfs. IPAM is the real
// railhead-ipam.
//
//   DIRECTORY  an empty one, for the node's files    PROGRAMS  the directory of railhead-ipam
//   FILE       series are appended to it (samples.h)
//
// Exit status: 0; 1 something could not be measured; 2 wrong command line.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "bench/samples.h"
#include "cni/nccl/nccl_config_files.h"
#include "cni/plugin/plugin.h"
#include "cni/protocol/cni_request.h"
#include "cni/protocol/read_request.h"
#include "cni/state/attach_log.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::bench {
namespace {

constexpr int kRails = 8;
constexpr const char* kContainer = "sandbox";

nlohmann::json FabricText() {
  nlohmann::json fabric = {{"version", 1}, {"addresses", {{"reuseDelaySeconds", 0}, {"conflictProbeMs", 0}}}};
  for (int rail = 0; rail < kRails; ++rail) {
    const std::string number = std::to_string(rail);
    const std::string net = "10." + std::to_string(100 + rail) + ".0.";
    fabric["rails"].push_back({{"name", "rail" + number},
                               {"pf", "pf" + number},
                               {"vlan", 100 + rail},
                               {"subnet", net + "0/24"},
                               {"gateway", net + "254"},
                               {"routes", {"10.96.0.0/11"}},
                               {"nodeRanges", {{"node0", net + "10-" + net + "99"}}}});
  }
  return fabric;
}

class Node {
 public:
  Node(const std::string& directory, std::string programs)
      : sysfs_(directory), kernel_(sysfs_), programs_(std::move(programs)) {
    // Addresses that come up by themselves must not take GID slots.
    kernel_.state().default_addr_gen_mode = AddrGenMode::kStablePrivacy;
    for (int rail = 0; rail < kRails; ++rail) {
      const std::string number = std::to_string(rail);
      const auto vfs = kernel_.AddPf(
          {.address = "0000:" + number + "3:00.0", .netdev = "pf" + number, .rdma = "mlx5_" + number},
          {.count = 1, .rdma = "mlx5_{pf}v{n}"});
      devices_.push_back(vfs.front());
    }
    pod_ = kernel_.AddNamespace("pod");
    kernel_.AddVeth(pod_, "eth0", testing::kHost, "veth-pod");
    kernel_.AddAddress(pod_, "eth0", "10.244.0.5/24");
    kernel_.AddDefaultRoute(pod_, "eth0", "10.244.0.1");
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "11111111-2222\n");
    sysfs_.Write("/etc/railhead/node-name", "node0\n");
    sysfs_.Write("/etc/railhead/fabric.json", FabricText().dump());
  }

  [[nodiscard]] Root root() const { return sysfs_.root(); }

  Result<void> Add() {
    const CniRequest request = RH_TRY(Request("ADD"));
    RH_TRY(attachment::RailheadPlugin(root(), kernel_).Add(request));
    return {};
  }
  Result<void> Del() {
    const CniRequest request = RH_TRY(Request("DEL"));
    return attachment::RailheadPlugin(root(), kernel_).Del(request);
  }

 private:
  [[nodiscard]] Result<CniRequest> Request(const std::string& command) const {
    const std::map<std::string, std::string> variables{
        {"CNI_COMMAND", command}, {"CNI_CONTAINERID", kContainer},
        {"CNI_NETNS", pod_},      {"CNI_IFNAME", "rail0"},
        {"CNI_ARGS", ""},         {"CNI_PATH", programs_}};
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    ::setenv("RAILHEAD_ROOT", root().prefix().c_str(), 1);
    auto request = ReadEnvironment([&](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
    if (!request) return Fail(request.error().error);
    const nlohmann::json config = {
        {"cniVersion", "1.0.0"}, {"name", "roce"}, {"type", "railhead"}, {"devices", devices_}};
    const auto read = ReadConfiguration(config.dump(), *request);
    if (!read) return Fail(read.error().error);
    return *std::move(request);
  }

  testing::FakeSysfs sysfs_;
  testing::FakeKernel kernel_;
  std::string programs_;
  std::string pod_;
  std::vector<std::string> devices_;
};

// The pod must have this file after ADD; otherwise there was nothing to measure.
Result<void> CheckNcclConfig(const Root& root) {
  const auto conf = RH_TRY(ReadFile(nccl::NcclConfigPath(root, kContainer)));
  if (conf && conf->find("NCCL_IB_HCA==mlx5_") != std::string::npos) return {};
  return Fail(ErrorCode::kConflict, "ADD left no NCCL configuration");
}

Result<void> AddPhase(const Root& root, Samples* samples) {
  const auto timings = RH_TRY(ReadAttachTimings(root));
  if (timings.empty()) return Fail(ErrorCode::kNotFound, "ADD has logged no phases");
  for (const auto& [phase, took] : timings.back().phases) {
    if (phase != "nccl") continue;
    samples->Add("nccl", "railhead", "ADD", "ms", static_cast<double>(took.count()) / 1000);
    return {};
  }
  return Fail(ErrorCode::kNotFound, "ADD has not logged the phase nccl");
}

Result<void> Measure(const std::string& directory, const std::string& programs, std::int64_t rounds,
                     Samples* samples) {
  Node node(directory, programs);
  for (std::int64_t round = 0; round <= rounds; ++round) {
    RH_TRY(node.Add());
    RH_TRY(CheckNcclConfig(node.root()));
    if (round != 0) RH_TRY(AddPhase(node.root(), samples));
    RH_TRY(node.Del());
  }
  return {};
}

int Main(int argc, char** argv) {
  const auto rounds = argc == 5 ? ParseInt(argv[3]) : std::nullopt;
  if (!rounds || *rounds < 1) {
    (void)std::fputs("usage: railhead_nccl_config_bench DIRECTORY PROGRAMS ROUNDS FILE\n", stderr);
    return 2;
  }
  Samples samples;
  auto done = Measure(argv[1], argv[2], *rounds, &samples);
  if (done) done = samples.AppendTo(argv[4]);
  if (done) return 0;
  (void)std::fprintf(stderr, "railhead_nccl_config_bench: %s\n", Describe(done.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace railhead::bench

int main(int argc, char** argv) {
  return railhead::bench::Main(argc, argv);
}
