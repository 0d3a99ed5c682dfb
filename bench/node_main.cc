// railhead_node_bench: the part of the benchmarks of railheadd that has to be C++; bench/node.py and
// bench/guest_nics.sh use it. See --help.
//
// Measurements are appended to a file of JSON lines (samples.h), which bench/report.py shows.
// Exit status: 0; 1 something could not be measured; 2 wrong command line.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/bare_discovery.h"
#include "bench/node.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/support/sysfs/machines.h"

namespace railhead::bench {
namespace {

struct CommandLine {
  std::string root;
  std::string disk;
  std::string out;
  std::string socket;
  std::vector<std::string> ids;
  int vfs_per_pf = 128;
  NodeRounds rounds;
};

// A DGX H100 with eight GPUs and PCIe switches. The eight ports beside a GPU have VFs with RDMA devices; the
// four storage ports have none. bench/node_tree.py adds the other files. Prints the NICs and their VFs.
Result<void> MakeTree(const CommandLine& line) {
  testing::FakeSysfs sysfs(line.root);
  const testing::FakeMachine machine = testing::MakeDgxH100(sysfs);
  auto nics = nlohmann::json::array();
  for (const std::string& nic : machine.nics) {
    const bool storage = nic.starts_with("0000:29:") || nic.starts_with("0000:aa:");
    testing::FakeVfs vfs;
    vfs.rdma = "mlx5_{pf}_{n}";
    nics.push_back({{"address", nic}, {"vfs", nlohmann::json::array()}});
    if (!storage) nics.back()["vfs"] = sysfs.AddVfs(nic, line.vfs_per_pf, vfs);
  }
  (void)std::printf("%s\n", nics.dump().c_str());
  return {};
}

// A PF with VFs for programs that read sysfs, on a machine without such hardware; prints the VFs' addresses.
Result<void> MakePf(const CommandLine& line) {
  testing::FakeSysfs sysfs(line.root);
  sysfs.AddPf({.address = "0000:43:00.0", .netdev = "pf0", .numa_node = 0, .driver = "igb"});
  for (const auto& vf : sysfs.AddVfs("0000:43:00.0", line.vfs_per_pf, {.netdev = "vf{n}", .driver = "igbvf"}))
    (void)std::printf("%s\n", vf.c_str());
  return {};
}

// Reads once: the other program of the comparison runs in turn with this one.
Result<void> ReadForDoctor(const CommandLine& line) {
  const auto start = std::chrono::steady_clock::now();
  const BareDiscovery read = RH_TRY(ReadBareForDoctor(Root(line.root)));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  const nlohmann::json done = {{"ms", took.count()}, {"files", read.files}};
  (void)std::printf("%s\n", done.dump().c_str());
  return {};
}

Result<void> Measure(const CommandLine& line, const std::string& command) {
  Samples samples;
  const Root root(line.root);
  RH_TRY(command == "work"    ? MeasureNodeWork(root, line.disk, line.rounds, &samples)
         : command == "calls" ? MeasureCalls(line.socket, line.ids, line.rounds, &samples)
         : command == "nics"  ? MeasureNics(root, line.rounds.discovery, &samples)
                              : MeasureRealNics(root, line.rounds.discovery, &samples));
  return samples.AppendTo(line.out);
}

int Main(int argc, char** argv) {
  CLI::App app("railhead_node_bench: measures railheadd with many VFs; bench/run.sh uses it");
  app.require_subcommand(1);
  CommandLine line;
  const auto add = [&](const char* name, const char* text) {
    CLI::App* command = app.add_subcommand(name, text);
    command->add_option("--root", line.root, "Where the node's tree is")->required();
    return command;
  };
  add("tree", "Makes the tree below an existing directory")
      ->add_option("--vfs-per-pf", line.vfs_per_pf, "On each of eight PFs")
      ->check(CLI::Range(1, 128));
  add("pf", "Makes a tree with one PF")->add_option("--vfs", line.vfs_per_pf, "Of it");
  add("bare-doctor", "Reads what railctl doctor reads most of");
  auto* work = add("work", "railheadd's own work, in this process");
  work->add_option("--disk", line.disk, "An empty directory on a disk: becomes /var/lib")->required();
  auto* calls = add("calls", "kubelet's calls of a railheadd");
  calls->add_option("--socket", line.socket, "railheadd's")->required();
  calls->add_option("ids", line.ids, "Its devices")->required();
  auto* nics = add("nics", "/metrics/nics with all VFs in pods; changes the tree");
  auto* real = add("real-nics", "/metrics/nics of this node beside changes of links");
  for (CLI::App* command : {work, calls, nics, real}) {
    command->add_option("--out", line.out, "File to append to")->required();
    command->add_option("--rounds", line.rounds.discovery, "Of discovery or scrapes")
        ->check(CLI::PositiveNumber);
    command->add_option("--allocations", line.rounds.allocations)->check(CLI::PositiveNumber);
    command->add_option("--preferences", line.rounds.preferences)->check(CLI::PositiveNumber);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const std::string command = app.get_subcommands().front()->get_name();
  const auto done = command == "tree"          ? MakeTree(line)
                    : command == "pf"          ? MakePf(line)
                    : command == "bare-doctor" ? ReadForDoctor(line)
                                               : Measure(line, command);
  if (done) return 0;
  (void)std::fprintf(stderr, "railhead_node_bench: %s\n", Describe(done.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace railhead::bench

int main(int argc, char** argv) {
  return railhead::bench::Main(argc, argv);
}
