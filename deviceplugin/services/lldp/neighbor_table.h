// NeighborTable: the LLDP neighbors of each PF, and how long they stay.
//
// IEEE 802.1AB drops a neighbor when its time to live is over. This table reports where a cable ends, so it
// differs.
//
//   - While a PF cannot receive (no carrier, in a pod, railheadd not running), times to live do not run. A
//     rail without carrier keeps its last switch.
//
//   - The first frame after that replaces all earlier neighbors, since the cable may be another one.
//
//   - A neighbor that announces its end (time to live 0, as a switch does at shutdown) stays for another
//     minute. Its ports lose carrier in that time.
//
// A port has one neighbor, but a hub or a VF may send frames, too. The first one stays the neighbor as long
// as its frames come. The others are listed, kMost in all. No frame counts longer than kLongest.
// Threads: a value; one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/services/lldp/lldp_report.h"
#include "netns/packet/lldp_neighbor.h"

namespace railhead::lldp {

class NeighborTable {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMost = 4;
  static constexpr std::chrono::seconds kLongest{3600};
  static constexpr std::chrono::seconds kGoodbye{60};

  struct Time {
    Clock::time_point now;
    std::chrono::system_clock::time_point wall;
    static Time Now() { return {Clock::now(), std::chrono::system_clock::now()}; }
  };

  // PFs by their PCI address. `heard` is an earlier process's: it counts as if the PF could not receive until
  // now.
  void Restore(const std::string& device, const HeardNeighbor& heard, const Time& time);
  void Add(const std::string& device, const LldpNeighbor& neighbor, const Time& time);
  // At each pass: `hears` is false when the PF cannot receive now, or could not since the pass before.
  void Refresh(const std::string& device, bool hears, const Time& time);
  // Forgets all other PFs.
  void KeepOnly(const std::set<std::string>& devices);

  // The neighbor first, then the others.
  [[nodiscard]] std::vector<HeardNeighbor> Of(const std::string& device) const;

 private:
  struct Entry {
    HeardNeighbor heard;
    Clock::time_point expires;
    bool sure = true;  // heard since the PF could hear
  };
  std::map<std::string, std::vector<Entry>> entries_;
};

}  // namespace railhead::lldp
