// railhead_ipam_bench: the IPAM plugins alone; bench/ipam.sh uses it. See --help.
//
// Measurements are appended to a file of JSON lines (record.h), which railhead_bench reports.
// Exit status: 0; 1 something could not be measured; 2 wrong command line.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "bench/ipam_work.h"

namespace railhead::bench {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("railhead_ipam_bench: measures railhead-ipam and host-local; bench/run.sh uses it");
  IpamSetting setting;
  std::string out;
  app.add_option("--programs", setting.programs, "Directory of the project's programs")->required();
  app.add_option("--peers", setting.peers, "Directory of the standard plugins")->required();
  app.add_option("--disk", setting.disk, "An empty directory on a disk")->required();
  app.add_option("--out", out, "File to append to")->required();
  app.add_option("--rounds", setting.rounds)->check(CLI::PositiveNumber);
  app.add_option("--taken", setting.taken)->check(CLI::PositiveNumber);
  app.add_option("--crowd", setting.crowd)->check(CLI::PositiveNumber);
  app.add_option("--burst-rounds", setting.burst_rounds)->check(CLI::PositiveNumber);
  app.add_option("--pods", setting.pods)->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Record record;
  auto done = MeasureIpam(setting, &record);
  if (done) done = record.AppendTo(out);
  if (done) return 0;
  (void)std::fprintf(stderr, "railhead_ipam_bench: %s\n", Describe(done.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace railhead::bench

int main(int argc, char** argv) {
  return railhead::bench::Main(argc, argv);
}
