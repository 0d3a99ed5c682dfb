#include "deviceplugin/services/lldp/lldp_report.h"

#include <algorithm>
#include <utility>

#include "netns/json/record_io.h"

template struct railhead::StateFile<railhead::lldp::LldpReport>;

namespace railhead::lldp {
const RailNeighbor* LldpReport::Find(const std::string& rail) const {
  const auto found = std::ranges::find(rails, rail, &RailNeighbor::rail);
  return found == rails.end() ? nullptr : &*found;
}

bool SaysTheSame(const LldpReport& a, const LldpReport& b) {
  return a.node == b.node && std::equal(a.rails.begin(), a.rails.end(), b.rails.begin(), b.rails.end(),
                                        [](RailNeighbor one, RailNeighbor other) {
                                          for (RailNeighbor* rail : {&one, &other}) {
                                            if (rail->neighbor) rail->neighbor->heard = {};
                                          }
                                          return one == other;
                                        });
}

std::string CablingOf(const RailNeighbor& rail) {
  std::string text(WordOf(rail.cabling));
  if (!rail.because.empty()) text += ": " + rail.because;
  if (rail.neighbor && !rail.carrier) text += " (no carrier)";
  for (const std::string& other : rail.others) text += "; also heard: " + other;
  return text;
}

}  // namespace railhead::lldp
