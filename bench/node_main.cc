// railhead_node_bench: railheadd with many VFs; bench/node.sh and bench/guest_nics.sh use it. See --help.
//
// Measurements are appended to a file of JSON lines (record.h), which railhead_bench reports.
// Exit status: 0; 1 something could not be measured; 2 wrong command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "bench/doctor_tree.h"
#include "bench/node_daemon.h"
#include "bench/node_doctor.h"
#include "bench/node_nics.h"
#include "bench/node_tree.h"
#include "bench/node_work.h"
#include "bench/record.h"
#include "netns/base/files.h"

namespace railhead::bench {
namespace {

struct CommandLine {
  std::string root;
  std::string disk;
  std::string out;
  int vfs_per_pf = 128;
  bool late = false;
  NodeRounds rounds;
  NodeDaemonSetting daemon;
  int idle_seconds = 60;
};

// Prints the names of the network devices, one a line, for whoever makes them.
Result<void> MakeTree(const CommandLine& line) {
  for (const std::string& netdev : BuildNode(line.root, line.vfs_per_pf, line.late).netdevs)
    (void)std::printf("%s\n", netdev.c_str());
  return {};
}

Result<void> MeasureWork(const CommandLine& line) {
  Record record;
  RH_TRY(MeasureNodeWork(Root(line.root), line.disk, line.rounds, &record));
  return record.AppendTo(line.out);
}

Result<void> MeasureDaemon(CommandLine& line) {
  Record record;
  line.daemon.root = Root(line.root);
  line.daemon.late = line.late;
  line.daemon.devices = static_cast<std::size_t>(kNodeRails) * static_cast<std::size_t>(line.vfs_per_pf);
  line.daemon.idle = std::chrono::seconds(line.idle_seconds);
  RH_TRY(MeasureNodeDaemon(line.daemon, &record));
  return record.AppendTo(line.out);
}

Result<void> MeasurePage(const CommandLine& line) {
  Record record;
  RH_TRY(MeasureNics(Root(line.root), line.rounds.discovery, &record));
  return record.AppendTo(line.out);
}

Result<void> MeasureRealPage(const CommandLine& line) {
  Record record;
  RH_TRY(MeasureRealNics(Root(line.root), line.rounds.discovery, &record));
  return record.AppendTo(line.out);
}

// Last: what it adds to the tree is more than railheadd is measured with.
Result<void> MeasureCommand(const CommandLine& line) {
  AddFactsForDoctor(line.root);
  Record record;
  RH_TRY(MeasureDoctor(Root(line.root), line.daemon.program, line.rounds.discovery, &record));
  return record.AppendTo(line.out);
}

CLI::App* AddNics(CLI::App& app, const char* name, const char* text, CommandLine& line) {
  auto* nics = app.add_subcommand(name, text);
  nics->add_option("--root", line.root, "Where the node's tree is")->required();
  nics->add_option("--out", line.out, "File to append to")->required();
  nics->add_option("--rounds", line.rounds.discovery)->check(CLI::PositiveNumber);
  return nics;
}

int Main(int argc, char** argv) {
  CLI::App app("railhead_node_bench: measures railheadd with many VFs; bench/run.sh uses it");
  app.require_subcommand(1);
  CommandLine line;
  const auto with_tree = [&](CLI::App* command) {
    command->add_option("--root", line.root, "Where the node's tree is")->required();
    command->add_option("--vfs-per-pf", line.vfs_per_pf, "On each of eight PFs")->check(CLI::Range(1, 128));
    command->add_flag("--late", line.late, "With late binding");
    return command;
  };
  auto* tree = with_tree(app.add_subcommand("tree", "Makes the tree below an existing directory"));
  auto* work = with_tree(app.add_subcommand("work", "railheadd's own work, in this process"));
  work->add_option("--out", line.out, "File to append to")->required();
  work->add_option("--disk", line.disk, "An empty directory on a disk: becomes /var/lib/railhead")
      ->required();
  work->add_option("--discoveries", line.rounds.discovery)->check(CLI::PositiveNumber);
  work->add_option("--allocations", line.rounds.allocations)->check(CLI::PositiveNumber);
  work->add_option("--preferences", line.rounds.preferences)->check(CLI::PositiveNumber);
  auto* daemon = with_tree(app.add_subcommand("daemon", "railheadd as a process, with a kubelet"));
  daemon->add_option("--out", line.out, "File to append to")->required();
  daemon->add_option("--program", line.daemon.program, "railheadd")->required();
  daemon->add_option("--allocations", line.daemon.allocations)->check(CLI::PositiveNumber);
  daemon->add_option("--preferences", line.daemon.preferences)->check(CLI::PositiveNumber);
  daemon->add_option("--changes", line.daemon.changes)->check(CLI::PositiveNumber);
  daemon->add_option("--idle", line.idle_seconds, "Seconds")->check(CLI::NonNegativeNumber);
  auto* doctor = app.add_subcommand("doctor", "railctl doctor; changes the tree");
  doctor->add_option("--root", line.root, "Where the node's tree is")->required();
  doctor->add_option("--out", line.out, "File to append to")->required();
  doctor->add_option("--program", line.daemon.program, "railctl")->required();
  doctor->add_option("--rounds", line.rounds.discovery)->check(CLI::PositiveNumber);
  auto* nics = AddNics(app, "nics", "/metrics/nics with all VFs in pods; changes the tree", line);
  auto* real = AddNics(app, "real-nics", "/metrics/nics of this node beside changes of links", line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto done = tree->parsed()     ? MakeTree(line)
                    : work->parsed()   ? MeasureWork(line)
                    : doctor->parsed() ? MeasureCommand(line)
                    : nics->parsed()   ? MeasurePage(line)
                    : real->parsed()   ? MeasureRealPage(line)
                                       : MeasureDaemon(line);
  if (done) return 0;
  (void)std::fprintf(stderr, "railhead_node_bench: %s\n", Describe(done.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace railhead::bench

int main(int argc, char** argv) {
  return railhead::bench::Main(argc, argv);
}
