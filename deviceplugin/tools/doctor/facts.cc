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

FactKinds FactKinds::WithTheirOwn() const {
  FactKinds whole = *this;
  if (whole.Has(FactKind::kCdi)) whole.Add({FactKind::kProcesses});  // which runtimes there are
  if (whole.Has(FactKind::kBridges)) whole.Add({FactKind::kAccelerators});
  if (whole.Has(FactKind::kGids)) whole.Add({FactKind::kRdmaDevices});
  // An accelerator is no NIC; the others are facts of PFs.
  for (const FactKind kind : {FactKind::kAccelerators, FactKind::kPorts, FactKind::kGids, FactKind::kFirmware,
                              FactKind::kSriovControl, FactKind::kIommu, FactKind::kMtu, FactKind::kArp,
                              FactKind::kDcb, FactKind::kEcn, FactKind::kVfStates}) {
    if (whole.Has(kind)) whole.Add({FactKind::kPfs});
  }
  return whole;
}

}  // namespace railhead::doctor
