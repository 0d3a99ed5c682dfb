#include "deviceplugin/tools/doctor/facts.h"

#include "netns/base/text.h"

namespace railhead::doctor {

std::string PfFacts::Name() const {
  return netdev.empty() ? address.ToString() : netdev + " (" + address.ToString() + ")";
}

std::optional<LinuxRelease> NodeFacts::Release() const {
  const auto parts = Split(kernel, '.');
  if (parts.size() < 2) return std::nullopt;
  const auto major = ParseInt(parts[0]);
  const auto minor = ParseInt(parts[1].substr(0, parts[1].find_first_not_of("0123456789")));
  if (!major || !minor) return std::nullopt;
  return LinuxRelease(static_cast<int>(*major), static_cast<int>(*minor));
}

std::string NodeFacts::WhyNoPf() const {
  return pfs_unknown.empty() ? "this node has no rail" : pfs_unknown;
}

const Rail* NodeFacts::RailOf(const PfFacts& pf) const {
  return fabric && !pf.rail.empty() ? fabric->FindRail(pf.rail) : nullptr;
}

}  // namespace railhead::doctor
