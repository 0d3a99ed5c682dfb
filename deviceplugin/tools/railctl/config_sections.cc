#include "deviceplugin/tools/railctl/config_sections.h"

#include <nlohmann/json.hpp>

#include "cni/attachment/plugin_config_shape.h"
#include "cni/fabric/fabric_shape.h"
#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "deviceplugin/node/topology/topology_shape.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/health/rules_shape.h"
#include "deviceplugin/services/node_index/index_config.h"
#include "deviceplugin/services/node_status/node_status_settings.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "ipam/plugin/fields_shape.h"
#include "netns/json/record_schema.h"
#include "netns/linux_kernel.h"

namespace railhead::railctl {
namespace {

using Json = nlohmann::ordered_json;

// What else holds for an object of that type.
Json OfType(const char* type, const Json& then) {
  return {{"if",
           {{"type", "object"},
            {"properties", {{"type", {{"const", type}}}}},
            {"required", Json::array({"type"})}}},
          {"then", then}};
}

Json FabricSchema() {
  Json schema = SchemaOf<Fabric>("Railhead: fabric.json");
  Json& properties = schema["properties"];
  properties["health"] = SectionSchemaOf<health::HealthRules>();
  properties["provision"] = SectionSchemaOf<provision::ProvisionSettings>();
  properties["reachability"] = SectionSchemaOf<reachability::ReachabilitySettings>();
  properties["nodeStatus"] = SectionSchemaOf<node_status::NodeStatusSettings>();
  properties["addresses"]["properties"]["index"] = SectionSchemaOf<node_index::IndexConfig>();
  return schema;
}

Json NetworkSchema() {
  Json schema = SchemaOf<attachment::PluginConfig>("Railhead: a network configuration");
  schema["properties"]["ipam"]["allOf"] =
      Json::array({OfType(kOwnIpam, record::ObjectSchema(ipam::IpamObject{}))});
  return schema;
}

Json TopologySchema() {
  return SchemaOf<topology::TopologyFields>("Railhead: topology.json");
}

}  // namespace

Result<NodeSnapshot> SnapshotOfThisNode(const Root& root, const ConfigSource& source) {
  LinuxKernel kernel(root);
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(host));
  const inventory::HostNetwork network = RH_TRY(inventory::ReadHostNetwork(root, *route));
  return TakeSnapshot(root, source, network, resources::DdpOfKernel(root));
}

Result<NodeSnapshot> SnapshotOfThisNode(const Root& root) {
  return SnapshotOfThisNode(root,
                            {.fabric = {}, .sriovdp = {}, .resource_prefix = resources::kSriovdpPrefix});
}

std::map<std::string, Json (*)()> Schemas() {
  return {{"fabric", FabricSchema}, {"network", NetworkSchema}, {"topology", TopologySchema}};
}

}  // namespace railhead::railctl
