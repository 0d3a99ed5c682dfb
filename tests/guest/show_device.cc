// show-device NETDEV: prints the settings of a device of this network namespace, one "NAME VALUE" per line.
//
// show-device --fields: prints the names of all possible settings.
#include <cstdio>
#include <string>
#include <string_view>

#include "netns/linux_kernel.h"

namespace railhead {
namespace {

Result<DeviceState> ReadSettings(const std::string& netdev) {
  LinuxKernel kernel{Root()};
  const NetNs ns = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(ns));
  const auto link = RH_TRY(route->FindLink(netdev));
  if (!link) return Fail(ErrorCode::kNotFound, "there is no " + netdev);
  const auto devices = RH_TRY(kernel.OpenDevices(ns));
  return devices->Read(*link);
}

}  // namespace
}  // namespace railhead

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string what = argv[1];
  if (what == "--fields") {
    for (const auto& field : railhead::DeviceFields()) std::printf("%s\n", std::string(field.name).c_str());
    return 0;
  }
  const auto state = railhead::ReadSettings(what);
  if (!state) {
    std::fprintf(stderr, "show-device: %s\n", railhead::Describe(state.error()).c_str());
    return 1;
  }
  for (const auto& [name, value] : state->values) std::printf("%s %s\n", name.c_str(), value.c_str());
  return 0;
}
