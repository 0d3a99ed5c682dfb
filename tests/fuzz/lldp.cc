// LLDP frames that any host may have sent, and the report that railheadd makes of them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/lldp/lldp_report.h"
#include "netns/json/record_io.h"
#include "netns/packet/lldp_neighbor.h"
#include "tests/fuzz/fuzz.h"

namespace {

bool IsPlain(const std::string& text) {
  return text.size() <= 255 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  const auto neighbor = railhead::ParseLldp({data, size});
  if (!neighbor) return 0;
  Require(IsPlain(neighbor->chassis) && IsPlain(neighbor->port) && IsPlain(neighbor->port_description) &&
              IsPlain(neighbor->system_name),
          "texts are printable and bounded");
  Require(!neighbor->SwitchName().empty() && !neighbor->Port().empty(),
          "a switch and its port are called something");
  Require(neighbor->ttl.count() >= 0 && neighbor->ttl.count() <= 65535, "a time to live is two bytes");
  const auto is_vlan = [](int vlan) { return vlan >= 1 && vlan <= 4094; };
  Require(!neighbor->port_vlan || is_vlan(*neighbor->port_vlan), "a VLAN is one");
  Require(std::all_of(neighbor->vlans.begin(), neighbor->vlans.end(), is_vlan), "each VLAN is one");
  railhead::lldp::LldpReport report;
  report.node = "n";
  report.rails.resize(1);
  report.rails[0].rail = "rail0";
  report.rails[0].neighbor = railhead::lldp::HeardNeighbor{*neighbor, {}};
  const auto read =
      railhead::ParseRecord<railhead::lldp::LldpReport>(railhead::ToJson(report).dump(), "report");
  Require(read.has_value() && read->rails == report.rails, "what was heard is read as it was written");
  return 0;
}
