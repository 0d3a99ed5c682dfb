// LLDP frames that anybody may have sent, and what becomes of them: railheadd's report.
#include "netns/packet/lldp.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/lldp/lldp_report.h"
#include "netns/json/record_io.h"
#include "tests/fuzz/fuzz.h"

namespace {

bool IsPlain(const std::string& text) {
  return text.size() <= 255 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  const auto neighbour = railhead::ParseLldp({data, size});
  if (!neighbour) return 0;
  Require(IsPlain(neighbour->chassis) && IsPlain(neighbour->port) && IsPlain(neighbour->port_description) &&
              IsPlain(neighbour->system_name),
          "texts are printable and bounded");
  Require(!neighbour->Leaf().empty() && !neighbour->Port().empty(),
          "a switch and its port are called something");
  Require(neighbour->ttl.count() >= 0 && neighbour->ttl.count() <= 65535, "a time to live is two bytes");
  Require(!neighbour->port_vlan || (*neighbour->port_vlan >= 1 && *neighbour->port_vlan <= 4094),
          "a VLAN is one");
  railhead::lldp::LeafReport report;
  report.node = "n";
  report.rails.resize(1);
  report.rails[0].rail = "rail0";
  report.rails[0].neighbour = railhead::lldp::HeardNeighbour{*neighbour, {}};
  const auto read = railhead::lldp::ParseLeafReport(railhead::ToJson(report).dump(), "report");
  Require(read.has_value() && read->rails == report.rails, "what was heard is read as it was written");
  return 0;
}
