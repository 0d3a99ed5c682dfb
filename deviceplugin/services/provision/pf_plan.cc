#include "deviceplugin/services/provision/pf_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "deviceplugin/services/provision/pf_state.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"
#include "netns/json/record_schema.h"
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

namespace {

constexpr int kMostVfs = 65535;  // NumVFs of the SR-IOV capability has 16 bits
// A path component below /sys/bus/pci/drivers.
constexpr std::size_t kMaxDriverName = 64;

bool IsDriverName(const std::string& name) {
  return name.size() <= kMaxDriverName && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                  c == '_';
         });
}

}  // namespace

void VfsForm::Read(const JsonValue& json, PfSettings& settings) {
  settings.all_vfs = json.raw()->is_string();
  settings.vfs.reset();
  if (settings.all_vfs) {
    if (const auto word = json.String(); word != "max")
      json.Fail("'" + *word + "' is not known", "a number, or \"max\"");
  } else if (const auto count = json.Int(0, kMostVfs)) {
    settings.vfs = static_cast<int>(*count);
  }
}

nlohmann::ordered_json VfsForm::Schema() {
  return {{"anyOf", {{{"type", "integer"}, {"minimum", 0}, {"maximum", kMostVfs}}, {{"const", "max"}}}}};
}

void RailsForm::Read(const JsonValue& json, ProvisionSettings& provision) {
  auto rails = json.Object();
  if (!rails) return;
  for (const std::string& name : rails->Keys()) {
    const JsonValue rail = rails->At(name);
    PfSettings& settings = provision.rails[name] = provision.all;
    if (!rail.is_there()) continue;
    // null is a value here: the kernel chooses the driver, even where `all` names one.
    if (rail.raw()->contains("driver")) settings.driver.clear();
    (void)record::ReadObject(rail, settings, true);
  }
}

nlohmann::ordered_json RailsForm::Schema() {
  auto rail = record::ObjectSchema(PfSettings{});
  for (auto& [key, of] : rail["properties"].items()) of.erase("default");
  return {{"type", "object"}, {"additionalProperties", record::OrNull(std::move(rail))}};
}

Result<std::optional<ProvisionSettings>> ReadProvisionSettings(const Fabric& fabric, const std::string& what,
                                                               std::vector<Error>* all) {
  if (fabric.provision.empty()) return std::nullopt;
  return RH_TRY(ParseSection<ProvisionSettings>(
      fabric.provision, what, "/provision", all,
      [&](const ProvisionSettings& settings, const record::Complain& complain) {
        std::vector<std::string> names;
        for (const Rail& rail : fabric.rails) names.push_back(rail.name);
        for (const auto& [name, unused] : settings.rails) {
          if (fabric.FindRail(name) != nullptr) continue;
          const auto near = Nearest(name, names);
          complain(PointerOf("rails", name), "the fabric has no rail '" + name + "'",
                   near ? "did you mean " + *near + "?" : "");
        }
      }));
}

}  // namespace railhead::provision

void railhead::Shape<railhead::provision::PfSettings>::Check(const T& settings,
                                                             const record::Complain& complain) {
  if (provision::IsDriverName(settings.driver)) return;
  complain("driver", "'" + settings.driver + "' is not a valid driver name", kDriver.hint);
}
