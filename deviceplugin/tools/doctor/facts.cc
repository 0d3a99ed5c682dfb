#include "deviceplugin/tools/doctor/facts.h"

namespace railhead::doctor {

std::string PfFacts::Name() const {
  return netdev.empty() ? address.ToString() : netdev + " (" + address.ToString() + ")";
}

std::string NodeFacts::WhyNoPf() const {
  return pfs_unknown.empty() ? "this node has no rail" : pfs_unknown;
}

const Rail* NodeFacts::RailOf(const PfFacts& pf) const {
  return fabric && !pf.rail.empty() ? fabric->FindRail(pf.rail) : nullptr;
}

}  // namespace railhead::doctor
