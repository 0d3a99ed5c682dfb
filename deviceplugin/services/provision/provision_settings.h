// The state that fabric.json's object "provision" requires of this node's PFs.
//
// Settings hold for the PF of every rail; "rails" overrides some of them for one. docs/reference/fabric.md
// documents the shape. This code does not check whether the hardware supports them.
// Threads: plain values. Errors: kInvalid and kMalformed with the JSON pointer.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"
#include "netns/json/record_forms.h"

namespace railhead::provision {

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

}  // namespace railhead::provision
