#include "deviceplugin/node/inventory/subfunctions.h"

#include <algorithm>
#include <climits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cni/state/paths.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/inventory/netdev_facts.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"

namespace railhead::inventory {
namespace {

constexpr const char* kAuxiliaryDevices = "/sys/bus/auxiliary/devices";
constexpr const char* kSubfunction = "sf";

Result<std::vector<std::string>> NamesIn(const std::string& path) {
  auto names = RH_TRY(ListDirectory(path));
  return names ? *std::move(names) : std::vector<std::string>{};
}

// The PCI function nearest above the device; subfunctions may have devices below them.
Result<std::optional<PciAddress>> FunctionAbove(const std::string& path) {
  const auto target = RH_TRY(ReadLink(path));
  std::optional<PciAddress> nearest;
  if (!target) return nearest;
  for (const std::string& part : Split(*target, '/')) {
    if (const auto address = PciAddress::Parse(part)) nearest = address;
  }
  return nearest;
}

const NicFunction* FindFunction(const std::vector<NicFunction>& functions, const PciAddress& address) {
  const auto found = std::ranges::find(functions, address, &NicFunction::address);
  return found == functions.end() ? nullptr : &*found;
}

Result<NicFunction> Describe(const Root& root, const HostCarriers& host, const std::string& name,
                             const NicFunction& parent) {
  const std::string path = root.Path(kAuxiliaryDevices) + "/" + name;
  NicFunction function;
  function.kind = FunctionKind::kAuxiliary;
  function.id = name;
  function.address = parent.address;
  function.vendor = parent.vendor;
  function.device = parent.device;
  function.driver = parent.driver;
  function.numa_node = parent.numa_node;
  function.acpi_index = parent.acpi_index;
  function.pf = parent.pf;
  function.pf_name = parent.pf_name;
  const auto number = RH_TRY(ReadAttribute(path + "/sfnum"));
  const auto index = ParseInt(number ? *number : name.substr(name.rfind('.') + 1));
  if (index && *index >= 0 && *index <= INT_MAX) function.vf_index = static_cast<int>(*index);
  const auto netdevs = RH_TRY(NamesIn(path + "/net"));
  RH_TRY(ReadNetdevFacts(root, host, netdevs, &function));
  const auto rdma = RH_TRY(NamesIn(path + "/infiniband"));
  RH_TRY(ReadRdmaFacts(root, rdma, &function));
  // The devices of a subfunction in a pod are not visible here; its PF is of the same kind.
  if (function.link_type.empty()) {
    function.link_type = parent.link_type;
    function.is_rdma = function.is_rdma || (parent.is_rdma && Exists(path + "/driver"));
  }
  return function;
}

}  // namespace

Result<std::vector<NicFunction>> ListSubfunctions(const Root& root, const HostCarriers& host,
                                                  const std::vector<NicFunction>& functions) {
  std::vector<NicFunction> subfunctions;
  const auto names = RH_TRY(NamesIn(root.Path(kAuxiliaryDevices)));
  if (names.empty()) return subfunctions;
  const auto records = RH_TRY(NamesIn(paths::Allocations(root)));
  for (const std::string& name : names) {
    const std::string_view type = AuxTypeOf(name);
    if (type.empty()) continue;
    const std::string path = root.Path(kAuxiliaryDevices) + "/" + name;
    // The network device of a subfunction in a pod is not visible, but its allocation is.
    const bool own_netdev = type == kSubfunction || Exists(path + "/net") ||
                            std::binary_search(records.begin(), records.end(), name + ".json");
    if (!own_netdev) continue;
    const auto above = RH_TRY(FunctionAbove(path));
    const NicFunction* parent = above ? FindFunction(functions, *above) : nullptr;
    if (parent != nullptr) subfunctions.push_back(RH_TRY(Describe(root, host, name, *parent)));
  }
  return subfunctions;
}

std::string_view AuxTypeOf(std::string_view id) {
  const auto first = id.find('.');
  const auto last = id.rfind('.');
  if (first == std::string_view::npos || first == 0 || last == first) return {};
  const std::string_view type = id.substr(first + 1, last - first - 1);
  if (type.find('.') != std::string_view::npos || !ParseInt(id.substr(last + 1))) return {};
  return type;
}

}  // namespace railhead::inventory
