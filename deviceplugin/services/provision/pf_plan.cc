#include "deviceplugin/services/provision/pf_plan.h"

#include <algorithm>
#include <utility>

#include "deviceplugin/services/provision/derived_vf_mac.h"
#include "deviceplugin/services/provision/pf_state.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "netns/sys/user_space.h"

namespace railhead::provision {
namespace {

// The complete target of every VF of the PF.
VfTarget Everything(const PfActual& pf, const PfSettings& settings, std::optional<int> mtu, int index) {
  VfTarget vf;
  vf.index = index;
  if (settings.mac == MacPolicy::kDerived && pf.link && index < kDerivedVfMacs)
    vf.mac = DerivedVfMac(pf.link->permanent_mac, index);
  vf.driver = settings.driver;
  // With autoprobe off, an operator wants VFs without drivers.
  vf.bind = !vf.driver.empty() || pf.autoprobe.value_or(true);
  const bool netdev = UserSpaceOf(settings.driver) == UserSpace::kNone;
  if (netdev) vf.mtu = mtu;
  return vf;
}

// The part of `wanted` that the VF lacks. nullopt: none.
std::optional<VfTarget> Missing(const VfActual& actual, VfTarget wanted) {
  if (wanted.driver == actual.driver) wanted.driver.clear();
  wanted.bind = !wanted.driver.empty() || !actual.driver.empty();
  // nullopt: the VF is in an unknown namespace.
  if (!actual.mac || actual.mac == wanted.mac) wanted.mac.reset();
  if (wanted.Rebinds()) return wanted;
  if (!actual.link || actual.link->mtu >= wanted.mtu.value_or(0)) return std::nullopt;
  return wanted;
}

std::optional<Error> Unsupported(const PfActual& pf, int wanted) {
  const auto refuse = [](ErrorCode code, std::string message, std::string hint) {
    return std::optional<Error>(Error{code, std::move(message), std::move(hint), 0});
  };
  const std::string vfs = std::to_string(wanted) + (wanted == 1 ? " VF" : " VFs");
  if (wanted > 0 && pf.total_vfs == 0) {
    return refuse(ErrorCode::kUnsupported, pf.Name() + " shall have " + vfs + " and has no SR-IOV capability",
                  "switch SR-IOV on in the NIC's firmware and in the BIOS, or give the rail \"vfs\": 0");
  }
  if (wanted > pf.total_vfs) {
    return refuse(ErrorCode::kUnsupported,
                  pf.Name() + " shall have " + vfs + " and can have " + std::to_string(pf.total_vfs),
                  "raise the number in the NIC's firmware (mlxconfig: NUM_OF_VFS) and restart it, or ask for "
                  "fewer (\"max\": as many as it can have)");
  }
  if (pf.driver.empty()) {
    return refuse(ErrorCode::kUnsupported, pf.Name() + " has no driver, which would make its VFs",
                  "bind its driver first");
  }
  return std::nullopt;
}

std::optional<Error> Impossible(const PfPlan& plan, const PfSettings& settings, std::optional<int> mtu) {
  const PfActual& pf = plan.actual;
  if (plan.make) {
    if (auto error = Unsupported(pf, plan.wanted_vfs); error) return error;
  }
  const bool derives = settings.mac == MacPolicy::kDerived && plan.wanted_vfs > 0;
  // A PF that is in a pod and has the right settings needs nothing.
  if (!pf.link && plan.make && plan.wanted_vfs > 0 && (derives || mtu)) {
    return Error{ErrorCode::kNotFound, pf.Name() + " has no network interface on the host to set MAC or MTU",
                 "is it in another namespace, or without its driver?", 0};
  }
  if (derives && pf.link && pf.link->permanent_mac.IsZero()) {
    return Error{ErrorCode::kUnsupported, pf.Name() + " has no permanent MAC to derive its VFs' from",
                 "use \"mac\": \"keep\" for this rail", 0};
  }
  if (derives && plan.wanted_vfs > kDerivedVfMacs) {
    return Error{ErrorCode::kInvalid,
                 pf.Name() + " shall have " + std::to_string(plan.wanted_vfs) + " VFs with derived MACs",
                 "there are " + std::to_string(kDerivedVfMacs) +
                     " for each PF: ask for fewer VFs, or use \"mac\": \"keep\" for this rail",
                 0};
  }
  return std::nullopt;
}

}  // namespace

PfPlan PlanPf(PfActual actual, const PfSettings& settings, std::optional<int> rail_mtu) {
  PfPlan plan;
  plan.actual = std::move(actual);
  const PfActual& pf = plan.actual;
  const auto count = static_cast<int>(pf.vfs.size());
  plan.wanted_vfs = settings.all_vfs ? pf.total_vfs : settings.vfs.value_or(pf.vfs_before.value_or(count));
  plan.make = plan.wanted_vfs != count || pf.interrupted;
  std::optional<int> mtu = settings.mtu;
  if (rail_mtu) mtu = std::max(*rail_mtu, mtu.value_or(0));
  plan.refused = Impossible(plan, settings, mtu);
  plan.bring_up = plan.wanted_vfs > 0 && pf.link && !pf.link->up;
  if (mtu && pf.link && pf.link->mtu < *mtu) plan.mtu = mtu;
  for (int index = 0; index < plan.wanted_vfs; ++index) {
    VfTarget vf = Everything(pf, settings, mtu, index);
    if (plan.make) {
      plan.vfs.push_back(std::move(vf));
    } else if (auto missing = Missing(pf.vfs[static_cast<std::size_t>(index)], std::move(vf)); missing) {
      plan.vfs.push_back(*std::move(missing));
    }
  }
  return plan;
}

}  // namespace railhead::provision
