#include "deviceplugin/services/provision/provision_settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "netns/base/text.h"
#include "netns/json/record_io.h"
#include "netns/json/record_schema.h"

namespace railhead::provision {
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
