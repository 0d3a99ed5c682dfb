// railhead_handoff_bench: the handoff without what the kernel takes; bench/host.sh uses it. See --help.
//
// Measurements are appended to a file of JSON lines (record.h), which railhead_bench reports.
// Exit status: 0; 1 something could not be measured; 2 wrong command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "bench/handoff_add.h"
#include "bench/record.h"

namespace railhead::bench {
namespace {

struct CommandLine {
  std::string directory;
  std::string programs;
  std::string out;
  int rounds = 30;
};

Result<void> Measure(const CommandLine& line) {
  Record record;
  RH_TRY(MeasureHandoff(line.directory, line.programs, line.rounds, &record));
  return record.AppendTo(line.out);
}

int Main(int argc, char** argv) {
  CLI::App app("railhead_handoff_bench: the handoff of eight VFs beside the kernel; bench/host.sh uses it");
  CommandLine line;
  app.add_option("--directory", line.directory, "An empty one, for the node's files")->required();
  app.add_option("--programs", line.programs, "Directory of railhead-ipam")->required();
  app.add_option("--out", line.out, "File to append to")->required();
  app.add_option("--rounds", line.rounds, "Measured rounds")->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto done = Measure(line);
  if (done) return 0;
  (void)std::fprintf(stderr, "railhead_handoff_bench: %s\n", Describe(done.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace railhead::bench

int main(int argc, char** argv) {
  return railhead::bench::Main(argc, argv);
}
