// The changes that a PF needs to match the settings: a pure comparison.
//
// VFs in the right number stay, even if another program made them. For another count all VFs are removed
// first. The kernel offers no other way: with VFs present, sriov_numvfs_store in drivers/pci/iov.c answers
// EBUSY to N > 0. Threads: pure functions over values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/provision/pf_state.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "netns/json/record.h"

namespace railhead::provision {

// The target of a VF. nullopt and "": unchanged, or the kernel's choice.
struct VfTarget {
  int index = 0;
  std::optional<MacAddress> mac;
  std::string driver;
  bool bind = false;       // a driver is to be bound in the end
  std::optional<int> mtu;  // at least; only where it has a netdev

  // Whether its driver must be unbound and bound again. Only then do netdevs take over a MAC from their PF
  // (mlx5, igbvf), or do so without going down.
  [[nodiscard]] bool Rebinds() const { return mac.has_value() || !driver.empty(); }
  bool operator==(const VfTarget&) const = default;

  static void List(auto& f) {
    f("index", &VfTarget::index);
    f("mac", &VfTarget::mac);
    f("driver", &VfTarget::driver, kSparseField);
    f("mtu", &VfTarget::mtu);
  }
};

struct PfPlan {
  PfActual actual;
  int wanted_vfs = 0;
  bool bring_up = false;   // VFs of a PF that is down have no link, and igbvf no MAC
  std::optional<int> mtu;  // of the PF
  bool make = false;       // remove the present VFs, make wanted_vfs
  // If they are made: all of them. Otherwise the changed VFs, with their changes.
  std::vector<VfTarget> vfs;
  std::optional<Error> refused;  // why nothing may be done

  [[nodiscard]] bool NothingToDo() const { return !bring_up && !mtu && !Disturbs(); }
  // A new MTU restarts a PF, and under some drivers (igb) its VFs.
  [[nodiscard]] bool Disturbs() const { return make || mtu || !vfs.empty(); }

  // Without the reason that prevents it.
  static void ListOfPf(auto& f) {
    f.Output("rail", [](const PfPlan& plan) { return plan.actual.rail; });
    f.Output("pf", [](const PfPlan& plan) { return plan.actual.address.ToString(); });
    f.Output(
        "name",
        [](const PfPlan& plan) {
          return plan.actual.link ? std::optional(plan.actual.link->name) : std::nullopt;
        },
        kNullField);
    f.Group("vfs", [](auto& part) {
      part.Output("actual", [](const PfPlan& plan) { return plan.actual.vfs.size(); });
      part("wanted", &PfPlan::wanted_vfs);
      part.Output("max", [](const PfPlan& plan) { return plan.actual.total_vfs; });
    });
    f.Output("mtu", [](const PfPlan& plan) -> std::optional<std::map<std::string, int>> {
      if (!plan.actual.link) return std::nullopt;
      const auto now = static_cast<int>(plan.actual.link->mtu);
      return {{{"actual", now}, {"wanted", plan.mtu.value_or(now)}}};
    });
    f("make", &PfPlan::make);
    f.Output("steps", [](const auto& plan) { return StepsOf(plan); });
    f("changedVfs", &PfPlan::vfs);
  }
  static void List(auto& f) {
    ListOfPf(f);
    f("refused", &PfPlan::refused, kNullField);
  }
};

// `rail_mtu`: what pods of the rail get; the PF needs at least that.
PfPlan PlanPf(PfActual actual, const PfSettings& settings, std::optional<int> rail_mtu);

}  // namespace railhead::provision
