// power_loss: makes every disk that a power loss may cause, from a log of dm-log-writes, at every flush and
// between flushes. Checks each disk with recovery.h.
// Exit status: 0 nothing found; 1 findings, the first of which are shown; 2 it could not be run.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <random>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/system/power/recovery.h"
#include "tests/system/power/write_log.h"

namespace railhead::testing {
namespace {

struct Line {
  std::string log;
  std::string operations;
  std::string config;
  std::size_t size = 0;
  std::uint32_t seed = 1;
  std::size_t forget = 0;
  RecoverySetting setting;
};

constexpr std::size_t kShown = 10;  // findings; then the search ends
constexpr std::size_t kMaxLog = std::size_t{1} << 30U;

class Replay {
 public:
  Replay(const Line& line, std::vector<LoggedWrite> writes)
      : line_(line), writes_(std::move(writes)), random_(line.seed), disk_(line.size, '\0') {}

  Result<int> Run() {
    std::size_t flushed = 0;  // writes before this one are on the disk
    std::size_t answered = 0;
    for (std::size_t i = 0; i < writes_.size() && found_ < kShown; ++i) {
      const LoggedWrite& write = writes_[i];
      // The kernel also sets marks of its own, which are not numbers.
      if (const auto number = ParseInt(write.mark); number) answered = static_cast<std::size_t>(*number);
      if (!write.flush && !write.fua) continue;
      // Power loss before this flush: any part of the writes that it flushes may be on the disk.
      RH_TRY(Torn(flushed, i, answered));
      ApplyWrites(writes_, flushed, i + 1, &disk_, [](std::size_t) { return true; });
      flushed = i + 1;
      if (started_ || answered > 0) RH_TRY(Check("flush " + std::to_string(i), disk_, answered));
    }
    (void)std::printf(
        "%zu writes, %zu operations answered, %zu losses of power tried, %zu findings (seed %u)\n",
        writes_.size(), answered, tried_, found_, line_.seed);
    if (found_ == 0 && answered != line_.setting.operations.size())
      return Fail(ErrorCode::kConflict, "the log has seen " + std::to_string(answered) + " of " +
                                            std::to_string(line_.setting.operations.size()) + " operations");
    return found_ == 0 ? 0 : 1;
  }

 private:
  Result<void> Torn(std::size_t begin, std::size_t end, std::size_t answered) {
    std::size_t with_data = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (!writes_[i].data.empty()) ++with_data;
      // The making of the file system itself is not part of the test.
      if (writes_[i].mark == "0") started_ = true;
    }
    if (!started_ || with_data == 0) return {};
    std::string disk = disk_;
    ApplyWrites(writes_, begin, end, &disk, [&](std::size_t) { return (random_() & 1U) != 0; });
    return Check("before flush " + std::to_string(end), disk, answered);
  }

  // `forget` plants a fault: the answer to an operation comes before the operation is durable.
  Result<void> Check(const std::string& where, const std::string& disk, std::size_t answered) {
    ++tried_;
    const std::size_t acknowledged = std::min(answered + line_.forget, line_.setting.operations.size());
    const auto findings = RH_TRY_WRAP(CheckRecovery(line_.setting, disk, acknowledged), where);
    for (const std::string& finding : findings) {
      ++found_;
      (void)std::printf("%s, %zu answered: %s\n", where.c_str(), acknowledged, finding.c_str());
    }
    return {};
  }

  const Line& line_;
  const std::vector<LoggedWrite> writes_;
  std::mt19937 random_;
  std::string disk_;
  bool started_ = false;
  std::size_t tried_ = 0;
  std::size_t found_ = 0;
};

Result<int> Run(Line line) {
  const auto bytes = RH_TRY(ReadFile(line.log, kMaxLog));
  auto writes = RH_TRY(ParseWriteLog(bytes.value_or("")));
  line.setting.config = RH_TRY(ReadFile(line.config)).value_or("");
  line.setting.operations = RH_TRY(ReadOperations(line.operations));
  return Replay(line, std::move(writes)).Run();
}

int Main(int argc, char** argv) {
  Line line;
  CLI::App app("power_loss: replays a log of dm-log-writes and checks the address store at every flush");
  app.add_option("--log", line.log, "The log, a device or a file")->required();
  app.add_option("--operations", line.operations, "What was done, a line each")->required();
  app.add_option("--size", line.size, "Of the disk, bytes")->required();
  app.add_option("--device", line.setting.device, "A block device for the images")->required();
  app.add_option("--mount", line.setting.directory, "An empty directory")->required();
  app.add_option("--plugins", line.setting.plugins, "Directory of railhead-ipam")->required();
  app.add_option("--config", line.config, "File with the network configuration")->required();
  app.add_option("--seed", line.seed, "Which unflushed writes are lost");
  app.add_option("--forget", line.forget,
                 "Take so many operations as answered too early: has to find something");
  CLI11_PARSE(app, argc, argv);
  const auto status = Run(line);
  if (status) return *status;
  (void)std::fprintf(stderr, "power_loss: %s\n", Describe(status.error()).c_str());
  return 2;
}

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  return railhead::testing::Main(argc, argv);
}
