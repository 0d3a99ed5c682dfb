// The changes that a PF needs to match the settings: a pure comparison.
//
// VFs in the right number stay, even if another program made them. For another count all VFs are removed
// first. The kernel offers no other way: with VFs present, sriov_numvfs_store in drivers/pci/iov.c answers
// EBUSY to N > 0. Threads: pure functions over values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/provision/pf_state.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"
#include "netns/json/record_forms.h"

namespace railhead::provision {

// The state that fabric.json's object "provision" requires of this node's PFs.
//
// Settings hold for the PF of every rail; "rails" overrides some of them for one. docs/reference/fabric.md
// documents the shape. This code does not check whether the hardware supports them.
// Threads: plain values. Errors: kInvalid and kMalformed with the JSON pointer.

enum class MacPolicy : std::uint8_t {
  kKeep,     // as driver and firmware make them
  kDerived,  // DerivedVfMac()
};

struct PfSettings {
  std::optional<int> vfs;  // nullopt: as many as there are
  bool all_vfs = false;    // as many as the PF can have; then `vfs` is not given
  std::optional<int> mtu;  // at least this
  MacPolicy mac = MacPolicy::kKeep;
  std::string driver;         // below /sys/bus/pci/drivers; "": the kernel's choice
  bool allow_bonded = false;  // make VFs also on a PF that is a port of a bond of the host

  bool operator==(const PfSettings&) const = default;
};

struct ProvisionSettings {
  bool at_start = true;  // railheadd applies them when it starts
  PfSettings all;
  std::map<std::string, PfSettings>
      rails;  // complete: a setting that a rail does not override is as in `all`

  [[nodiscard]] const PfSettings& Of(const std::string& rail) const {
    const auto found = rails.find(rail);
    return found == rails.end() ? all : found->second;
  }
};

// `vfs`: a number, or "max".
struct VfsForm {
  static void Read(const JsonValue& json, PfSettings& settings);
  static nlohmann::ordered_json Schema();
};

// `rails`: the settings that differ for one rail, by name.
struct RailsForm {
  static void Read(const JsonValue& json, ProvisionSettings& provision);
  static nlohmann::ordered_json Schema();
};

}  // namespace railhead::provision

template <>
struct railhead::Names<railhead::provision::MacPolicy> {
  static constexpr std::array kAll = {std::pair{"keep", provision::MacPolicy::kKeep},
                                      std::pair{"derived", provision::MacPolicy::kDerived}};
};

template <>
struct railhead::Shape<railhead::provision::PfSettings> {
  using T = provision::PfSettings;
  static void List(auto& f) {
    f.Form("vfs", provision::VfsForm{});
    f("mtu", &T::mtu, {.min = kMinMtu, .max = kMaxMtu});
    f("mac", &T::mac);
    f("driver", &T::driver, kDriver);
    f("allowBonded", &T::allow_bonded);
  }
  static void Check(const T& settings, const record::Complain& complain);

 private:
  static constexpr FieldRules kDriver{.filled = true,
                                      .hint =
                                          "a name in /sys/bus/pci/drivers, for example mlx5_core or "
                                          "vfio-pci; null: the kernel's choice"};
};

template <>
struct railhead::Shape<railhead::provision::ProvisionSettings> {
  using T = provision::ProvisionSettings;
  static void List(auto& f) {
    f("atStart", &T::at_start);
    f.Part(&T::all);
    f.Form("rails", provision::RailsForm{});
  }
};

namespace railhead::provision {

// nullopt: the fabric has no such object. `what` names the fabric's file in errors. The result has the first
// error, `all` gets all of them.
Result<std::optional<ProvisionSettings>> ReadProvisionSettings(const Fabric& fabric, const std::string& what,
                                                               std::vector<Error>* all = nullptr);

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
