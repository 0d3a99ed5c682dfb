#include "deviceplugin/services/provision/provision_settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

constexpr int kMostVfs = 65535;  // NumVFs of the SR-IOV capability has 16 bits
constexpr int kMinMtu = 68;
constexpr int kMaxMtu = 65535;
// A path component below /sys/bus/pci/drivers.
constexpr std::size_t kMaxDriverName = 64;

bool IsDriverName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxDriverName && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

void ReadVfs(JsonReader& reader, PfSettings& settings) {
  const auto* value = reader.Raw("vfs");
  if (value == nullptr) return;
  settings.vfs.reset();
  settings.all_vfs = value->is_string();
  if (value->is_string()) {
    const auto word = value->get<std::string>();
    if (word != "max") reader.Fail("vfs", "'" + word + "' is not known", "a number, or \"max\"");
    return;
  }
  if (const auto count = reader.Int("vfs", 0, kMostVfs); count) settings.vfs = static_cast<int>(*count);
}

void ReadMac(JsonReader& reader, PfSettings& settings) {
  const auto word = reader.String("mac");
  if (!word) return;
  if (*word != "keep" && *word != "derived")
    reader.Fail("mac", "'" + *word + "' is not known", "keep or derived");
  settings.mac = *word == "derived" ? MacPolicy::kDerived : MacPolicy::kKeep;
}

// null is a value here: the kernel's choice, also where `all` names a driver.
void ReadDriver(JsonReader& reader, PfSettings& settings) {
  const std::vector<std::string> keys = reader.Keys();
  const bool given = std::find(keys.begin(), keys.end(), "driver") != keys.end();
  if (given && !reader.Has("driver")) settings.driver.clear();
  const auto name = reader.String("driver");
  if (!name) return;
  if (!IsDriverName(*name))
    reader.Fail(
        "driver", "'" + *name + "' is no driver's name",
        "a name in /sys/bus/pci/drivers, for example mlx5_core or vfio-pci; null: the kernel's choice");
  settings.driver = *name;
}

PfSettings ReadPfSettings(JsonReader& reader, const PfSettings& base) {
  PfSettings settings = base;
  ReadVfs(reader, settings);
  if (const auto mtu = reader.Int("mtu", kMinMtu, kMaxMtu); mtu) settings.mtu = static_cast<int>(*mtu);
  ReadMac(reader, settings);
  ReadDriver(reader, settings);
  settings.allow_bonded = reader.Bool("allowBonded").value_or(base.allow_bonded);
  return settings;
}

ProvisionSettings Read(JsonReader& reader, const Fabric& fabric) {
  ProvisionSettings settings;
  settings.at_start = reader.Bool("atStart").value_or(true);
  settings.all = ReadPfSettings(reader, {});
  auto rails = reader.Object("rails");
  std::vector<std::string> names;
  names.reserve(fabric.rails.size());
  for (const Rail& rail : fabric.rails) names.push_back(rail.name);
  for (const std::string& name : rails ? rails->Keys() : std::vector<std::string>{}) {
    if (fabric.FindRail(name) == nullptr) {
      const auto near = Nearest(name, names);
      rails->Fail(name, "there is no rail '" + name + "'", near ? "did you mean " + *near + "?" : "");
    }
    auto rail = rails->Object(name);
    if (!rail) continue;
    settings.rails[name] = ReadPfSettings(*rail, settings.all);
    rail->Close();
  }
  reader.Close();
  return settings;
}

}  // namespace

Result<std::optional<ProvisionSettings>> ReadProvisionSettings(const Fabric& fabric, const std::string& what,
                                                               std::vector<Error>* all) {
  if (fabric.provision.empty()) return std::nullopt;
  const JsonDocument document =
      RH_TRY(JsonDocument::Parse(R"({"provision":)" + fabric.provision + "}", what));
  JsonReader root = document.Root();
  std::optional<ProvisionSettings> settings;
  if (auto reader = root.Object("provision"); reader) settings = Read(*reader, fabric);
  if (all != nullptr) *all = root.errors();
  RH_TRY(root.status());
  return settings;
}

}  // namespace railhead
