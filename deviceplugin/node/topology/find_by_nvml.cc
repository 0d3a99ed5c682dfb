#include "deviceplugin/node/topology/find_by_nvml.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "deviceplugin/support/program/program.h"
#include "netns/base/files.h"

namespace railhead::topology {
namespace {

constexpr const char* kNvmlProgram = "railhead-nvml";
constexpr const char* kNvmlDirectory = "/usr/libexec/railhead";

// Where the dynamic linker looks for NVIDIA's library first.
std::vector<std::string> LibraryPath() {
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  if (path == nullptr) return {};
  return {std::string("LD_LIBRARY_PATH=") + path};
}

}  // namespace

std::optional<std::string> FindNvmlProgram(const Root& root, const std::string& beside) {
  const std::size_t slash = std::min(beside.rfind('/'), beside.size());
  for (const std::string& directory : {beside.substr(0, slash), std::string(kNvmlDirectory)}) {
    std::string path = root.Path(directory + "/" + kNvmlProgram);
    if (Exists(path)) return path;
  }
  return std::nullopt;
}

std::optional<PciAddress> FindByNvml(const std::string& uuid, const std::string& program,
                                     std::chrono::milliseconds limit) {
  const auto answer = AskProgram({program, {uuid}, LibraryPath(), limit});
  return answer ? PciAddress::Parse(answer->substr(0, answer->find('\n'))) : std::nullopt;
}

}  // namespace railhead::topology
