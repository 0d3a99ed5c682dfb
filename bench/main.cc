// railhead_bench: the measuring program below bench/run.sh. See --help.
//
// Measurements are appended to a file of JSON lines (record.h); `report` reads such
// files. Exit status: 0; 1 something could not be measured; 2 wrong command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/attach.h"
#include "bench/rails.h"
#include "bench/report.h"
#include "bench/startup.h"
#include "bench/verdict.h"
#include "netns/base/text.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::bench {
namespace {

struct CommandLine {
  Setting setting;
  RailsSetting rails;
  bool journal = false;
  bool tenants = false;
  std::vector<std::string> devices;
  std::string out;
  std::vector<std::string> programs;
  std::vector<std::string> files;
  Parts parts;
  std::string directory;
  int vfs = 8;
};

// "railhead=vf0,0000:43:10.0,pf0,0"
Result<void> ReadDevices(CommandLine& line) {
  for (const auto& text : line.devices) {
    const auto equals = text.find('=');
    const auto parts = Split(equals == std::string::npos ? "" : text.substr(equals + 1), ',');
    const auto vf = parts.size() == 4 ? ParseInt(parts[3]) : std::nullopt;
    if (!vf) return Fail(ErrorCode::kInvalid, "--device " + text, "WHO=NETDEV,BDF,PF,VF");
    line.setting.devices[text.substr(0, equals)] = {parts[0], parts[1], parts[2], static_cast<int>(*vf)};
  }
  return {};
}

Result<void> Attach(CommandLine& line) {
  RH_TRY(ReadDevices(line));
  Record record;
  RH_TRY(MeasureAttach(line.setting, record));
  return record.AppendTo(line.out);
}

// "vf0,0000:43:10.0,pf0,0,1": the last is the number of the rail
Result<void> ReadRails(CommandLine& line) {
  std::map<int, int> of_rail;
  for (const auto& text : line.devices) {
    const auto parts = Split(text, ',');
    const auto vf = parts.size() == 5 ? ParseInt(parts[3]) : std::nullopt;
    const auto rail = parts.size() == 5 ? ParseInt(parts[4]) : std::nullopt;
    if (!vf || !rail) return Fail(ErrorCode::kInvalid, "--vf " + text, "NETDEV,BDF,PF,VF,RAIL");
    RailDevice device{{parts[0], parts[1], parts[2], static_cast<int>(*vf)}, static_cast<int>(*rail), {}};
    // The names that railhead gives.
    const int before = of_rail[device.rail]++;
    device.pod_name = "rail" + std::to_string(device.rail);
    if (before > 0) device.pod_name += "-" + std::to_string(before);
    line.rails.devices.push_back(device);
  }
  return {};
}

Result<void> Rails(CommandLine& line) {
  RH_TRY(ReadRails(line));
  Record record;
  RH_TRY(line.journal                ? MeasureJournal(line.rails, record)
         : line.tenants              ? MeasureTenants(line.rails, record)
         : line.rails.before.empty() ? MeasureRails(line.rails, record)
                                     : MeasureBefore(line.rails, record));
  return record.AppendTo(line.out);
}

Result<void> Startup(const CommandLine& line) {
  Record record;
  RH_TRY(MeasureStartup(line.programs, line.setting.rounds, line.setting.group, record));
  return record.AppendTo(line.out);
}

Result<void> Note(const CommandLine& line) {
  Record record;
  const auto kib = ParseInt(line.programs.at(0));
  if (!kib) return Fail(ErrorCode::kInvalid, "'" + line.programs.at(0) + "' is no number");
  record.Add(kDaemon, "railheadd", "resident", "MB", static_cast<double>(*kib) * 1024 / 1e6);
  return record.AppendTo(line.out);
}

Result<void> Report(const CommandLine& line) {
  Record record;
  for (const auto& file : line.files) RH_TRY(record.Read(file));
  const auto verdicts = Judge(record, line.parts);
  (void)std::printf("%s%s", Tables(record).c_str(), Show(verdicts).c_str());
  if (AllMeasured(verdicts)) return {};
  return Fail(ErrorCode::kNotFound, "some figures were not measured", "see above");
}

// A PF with VFs for the programs that look at sysfs, where there is no hardware.
Result<void> FakeRoot(const CommandLine& line) {
  testing::FakeSysfs sysfs(line.directory);
  sysfs.AddPf({.address = "0000:43:00.0", .netdev = "pf0", .numa_node = 0, .driver = "igb"});
  for (const auto& vf : sysfs.AddVfs("0000:43:00.0", line.vfs, {.netdev = "vf{n}", .driver = "igbvf"})) {
    (void)std::printf("%s\n", vf.c_str());
  }
  return {};
}

CLI::App* AddAttach(CLI::App& app, CommandLine& line) {
  auto* command = app.add_subcommand("attach", "ADD and DEL of all contenders");
  command->add_option("--group", line.setting.group, "Name of the measurement")->required();
  command->add_option("--rounds", line.setting.rounds, "Measured rounds")->required();
  command->add_option("--programs", line.setting.programs, "Directory of the project's programs")->required();
  command->add_option("--peers", line.setting.peers, "Directory of the standard plugins");
  command->add_option("--root", line.setting.root, "RAILHEAD_ROOT");
  command->add_option("--scratch", line.setting.scratch, "Directory for state")->required();
  command->add_option("--vlan", line.setting.vlan, "VLAN that the VFs get");
  command->add_flag("--soft-roce", line.setting.soft_roce, "The rail has soft RoCE");
  command->add_flag("--by-bdf", line.setting.by_bdf, "host-device looks for the PCI address");
  command->add_option("--device", line.devices, "WHO=NETDEV,BDF,PF,VF; WHO: railhead, bare, host-device");
  command->add_option("--out", line.out, "File to append to")->required();
  return command;
}

CLI::App* AddRails(CLI::App& app, CommandLine& line) {
  auto* command = app.add_subcommand("rails", "ADD and DEL of several VFs at once");
  command->add_option("--group", line.rails.group, "Name of the measurement")->required();
  command->add_option("--rounds", line.rails.rounds, "Measured rounds")->required();
  command->add_option("--programs", line.rails.programs, "Directory of the project's programs")->required();
  command->add_option("--before", line.rails.before, "Those of an earlier build, to compare with them alone");
  command->add_option("--peers", line.rails.peers, "Directory of the standard plugins");
  command->add_option("--scratch", line.rails.scratch, "Directory for the peers' state")->required();
  command->add_flag("--soft-roce", line.rails.soft_roce, "The rails have soft RoCE");
  command->add_flag("--journal", line.journal, "Instead: the first VF with a short and a long journal");
  command->add_flag("--tenants", line.tenants, "Instead: for pods of two namespaces in turn");
  command->add_option("--vf", line.devices, "NETDEV,BDF,PF,VF,RAIL")->required();
  command->add_option("--out", line.out, "File to append to")->required();
  return command;
}

int Main(int argc, char** argv) {
  CLI::App app("railhead_bench: measures; bench/run.sh uses it");
  app.require_subcommand(1);
  CommandLine line;
  auto* attach = AddAttach(app, line);
  auto* rails = AddRails(app, line);
  auto* startup = app.add_subcommand("startup", "Start-up time and size of programs");
  startup->add_option("--group", line.setting.group, "Name of the measurement")->required();
  startup->add_option("--rounds", line.setting.rounds, "Measured rounds")->required();
  startup->add_option("--out", line.out, "File to append to")->required();
  startup->add_option("programs", line.programs, "Paths")->required();
  auto* note = app.add_subcommand("daemon", "Records railheadd's resident memory");
  note->add_option("--out", line.out, "File to append to")->required();
  note->add_option("kib", line.programs, "KiB")->required()->expected(1);
  auto* report = app.add_subcommand("report", "Tables and budgets");
  report->add_flag("!--no-host", line.parts.host, "Without the part on this machine");
  report->add_flag("!--no-guest", line.parts.guest, "Without the part in the guest");
  report->add_flag("!--no-ipam", line.parts.ipam, "Without the IPAM plugins alone");
  report->add_flag("!--no-node", line.parts.node, "Without railheadd with many VFs");
  report->add_option("files", line.files, "Files of records")->required();
  auto* fake = app.add_subcommand("fake-root", "Writes a sysfs with a PF and VFs; prints their addresses");
  fake->add_option("directory", line.directory, "Where")->required();
  fake->add_option("--vfs", line.vfs, "How many VFs")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto done = attach->parsed()    ? Attach(line)
                    : rails->parsed()   ? Rails(line)
                    : startup->parsed() ? Startup(line)
                    : note->parsed()    ? Note(line)
                    : report->parsed()  ? Report(line)
                                        : FakeRoot(line);
  if (done) return 0;
  (void)std::fprintf(stderr, "railhead_bench: %s\n", Describe(done.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace railhead::bench

int main(int argc, char** argv) {
  return railhead::bench::Main(argc, argv);
}
