#include "bench/startup.h"

#include <sys/stat.h>

#include <cerrno>

#include "bench/contender.h"
#include "bench/process.h"

namespace railhead::bench {
namespace {

struct Program {
  std::string name;
  ProcessCall call;
};

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

Result<void> MeasureStartup(const std::vector<std::string>& programs, int rounds, const std::string& group,
                            Record& record) {
  std::vector<Program> all = {{kTrue, {kTrue, {}, {}, ""}}};
  for (const auto& path : programs) {
    all.push_back({BaseName(path), {path, {}, {"CNI_COMMAND=VERSION"}, R"({"cniVersion":"1.0.0"})"}});
  }
  for (int round = 0; round <= rounds; ++round) {
    for (const auto& program : all) {
      const auto result = RH_TRY(RunProcess(program.call));
      if (program.name != kTrue && result.output.find("supportedVersions") == std::string::npos) {
        return Fail(ErrorCode::kIo, program.call.path + " does not answer VERSION: " + result.output);
      }
      if (round != 0) record.Add(group, program.name, "start-up", "ms", result.cost.wall_ms);
    }
  }
  for (const auto& path : programs) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return FailSys(errno, "looking at " + path);
    record.Add(group, BaseName(path), "size", "MB", static_cast<double>(status.st_size) / 1e6);
  }
  return {};
}

}  // namespace railhead::bench
