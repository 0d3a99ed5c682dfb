// Rails and their switches as values.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "deviceplugin/services/lldp/lldp_report.h"

namespace railhead::testing {

inline LldpNeighbor Neighbor(const std::string& leaf, const std::string& port = "swp1", int ttl = 120) {
  LldpNeighbor neighbor;
  neighbor.chassis = "chassis of " + leaf;
  neighbor.port = port;
  neighbor.system_name = leaf;
  neighbor.ttl = std::chrono::seconds(ttl);
  return neighbor;
}

inline std::chrono::system_clock::time_point Wall(int seconds) {
  return std::chrono::system_clock::time_point(std::chrono::seconds(1'800'000'000 + seconds));
}

// Connected to a switch; "": no LLDP frame has come.
inline lldp::RailNeighbor RailOn(const std::string& rail, const std::string& leaf,
                                 std::vector<std::string> expected = {}) {
  lldp::RailNeighbor one;
  one.rail = rail;
  one.device = "0000:" + std::to_string(40 + rail.back() - '0') + ":00.0";
  one.pf = "pf" + rail.substr(rail.size() - 1);
  one.carrier = true;
  one.expected = std::move(expected);
  if (!leaf.empty()) one.neighbor = lldp::HeardNeighbor{Neighbor(leaf), Wall(0)};
  return one;
}

}  // namespace railhead::testing
