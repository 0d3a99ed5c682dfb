#include "deviceplugin/node/resources/selector.h"

#include <algorithm>
#include <climits>

#include "deviceplugin/node/inventory/subfunctions.h"
#include "netns/base/text.h"

namespace railhead::resources {
namespace {

template <typename T>
bool EmptyOrHas(const std::vector<T>& wanted, const T& value) {
  return wanted.empty() || Contains(wanted, value);
}

bool MatchesPf(const std::vector<PfRange>& wanted, const std::string& pf, int vf_index) {
  if (wanted.empty()) return true;
  const std::string name = ToLower(pf);
  return std::ranges::any_of(wanted, [&](const PfRange& range) {
    return !name.empty() && ToLower(range.pf) == name && range.HasVf(vf_index);
  });
}

std::optional<int> ParseIndex(std::string_view text) {
  const auto value = ParseInt(text);
  if (!value || *value < 0 || *value > INT_MAX) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

Result<PfRange> PfRange::Parse(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return Fail(ErrorCode::kInvalid, "'" + std::string(text) + "' " + why,
                "write a PF and, if only some of its VFs are meant, their indices: pf0#0,2-7");
  };
  PfRange range;
  const auto hash = text.find('#');
  range.pf = std::string(text.substr(0, hash));
  if (range.pf.empty()) return wrong("names no PF");
  if (hash == std::string_view::npos) return range;
  for (const std::string& part : Split(text.substr(hash + 1), ',')) {
    const auto dash = part.find('-');
    const auto first = ParseIndex(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : ParseIndex(part.substr(dash + 1));
    if (!first || !last) return wrong("has a range of VFs that is not a list of numbers");
    if (*first > *last) return wrong("has a range of VFs whose end is below its start");
    range.vfs.emplace_back(*first, *last);
  }
  return range;
}

bool PfRange::HasVf(int index) const {
  if (vfs.empty()) return true;
  return std::ranges::any_of(
      vfs, [&](const auto& range) { return range.first <= index && index <= range.second; });
}

const char* Selector::FirstUnmet(const inventory::NicFunction& function) const {
  if (is_vf && *is_vf != function.is_vf) return "device";
  if (!EmptyOrHas(vendors, function.vendor)) return "vendors";
  if (!EmptyOrHas(devices, function.device)) return "devices";
  if (!EmptyOrHas(drivers, function.driver)) return "drivers";
  if (!EmptyOrHas(pci_addresses, function.address)) return "pciAddresses";
  if (!acpi_indexes.empty() && !(function.acpi_index && EmptyOrHas(acpi_indexes, *function.acpi_index))) {
    return "acpiIndexes";
  }
  if (!aux_types.empty() && !EmptyOrHas(aux_types, std::string(inventory::AuxTypeOf(function.id))))
    return "auxTypes";
  if (!MatchesPf(pf_names, function.pf_name, function.vf_index)) return "pfNames";
  if (!root_devices.empty() && !MatchesPf(root_devices, function.pf.ToString(), function.vf_index)) {
    return "rootDevices";
  }
  if (!EmptyOrHas(link_types, function.link_type)) return "linkTypes";
  if (!EmptyOrHas(ddp_profiles, function.ddp_profile)) return "ddpProfiles";
  if (!pkeys.empty() && !(function.pkey && EmptyOrHas(pkeys, *function.pkey))) return "pKeys";
  if (is_rdma.value_or(false) && !function.is_rdma) return "isRdma";
  if (vdpa != inventory::VdpaType::kNone && vdpa != function.vdpa) return "vdpaType";
  return nullptr;
}

bool Selector::Names(const inventory::NicFunction& pf) const {
  if (Contains(pci_addresses, pf.address)) return true;
  return std::ranges::any_of(pf_names, [&](const PfRange& range) {
    return range.vfs.empty() && !pf.pf_name.empty() && ToLower(range.pf) == ToLower(pf.pf_name);
  });
}

}  // namespace railhead::resources
