// The config.json of sriov-network-device-plugin.
#include <set>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "deviceplugin/tools/migrate/resources.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

void Inspect(const std::vector<resources::ResourceSpec>& specs) {
  std::set<std::string> names;
  inventory::NicFunction vf;
  vf.is_vf = true;
  vf.id = "mlx5_core.sf.2";
  vf.pf_name = "pf0";
  for (const auto& spec : specs) {
    Require(names.insert(spec.resource).second, "resources have different names");
    Require(resources::CheckResourceName(spec.resource).has_value(), "a resource's name is one");
    Require(!spec.selectors.empty(), "a resource has a selector");
    for (const auto& selector : spec.selectors) {
      Require(selector.vdpa == inventory::VdpaType::kNone || !selector.is_rdma.value_or(false),
              "vDPA and RDMA exclude each other");
      Require(selector.aux_types.empty() == (spec.kind != inventory::FunctionKind::kAuxiliary),
              "subfunctions, and only these, have types");
      for (const auto& range : selector.pf_names) {
        Require(!range.pf.empty(), "a range names its PF");
        for (const auto& [first, last] : range.vfs) Require(first <= last, "a range begins before it ends");
      }
      (void)selector.FirstUnmet(vf);
    }
  }
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace railhead;
  const std::string text = fuzz::TextOf(data, size);
  const auto specs = resources::ParseSriovdpConfig(text, "config.json", resources::kSriovdpPrefix);
  if (specs) fuzz::Inspect(*specs);
  const auto migration = migrate::MigrateResources(text, "config.json", resources::kSriovdpPrefix);
  fuzz::Require(specs.has_value() || !migration.has_value(), "only what can be read is migrated");
  if (migration && !migration->fabric.empty())
    fuzz::Require(ParseFabric(migration->fabric, "output").has_value(), "what comes out is a fabric");
  return 0;
}
