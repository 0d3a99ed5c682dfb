// NeighbourTable: who was heard at each PF, and for how long that holds.
//
// As IEEE 802.1AB has it a neighbour is forgotten when its time to live is over; with these differences,
// since the question here is where a cable ends, and not what can be reached through it now:
//   while a PF cannot hear (no carrier, in a pod, railheadd not running) the time stands still: a dead
//     rail keeps the name of the leaf that it hung on, which is what one wants to know of a dead rail;
//   what is heard after that replaces all of before, since the cable may be another one;
//   a neighbour that says that it ends (time to live 0, as switches do when they are shut down) is kept
//     for another minute, in which its ports go dark.
// A port has one neighbour, but frames may come from elsewhere (a hub; NICs whose switch lets a VF's pass):
// the one that was there first stays the neighbour as long as it is heard, the others are listed, kMost
// in all. Nobody's frame holds longer than kLongest.
// Threads: a value; one at a time.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/services/lldp/lldp_report.h"

namespace railhead {

class NeighbourTable {
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

  // PFs by their PCI address. From an earlier life: as if the PF could not hear until now.
  void Restore(const std::string& device, const HeardNeighbour& heard, const Time& time);
  void Hear(const std::string& device, const LldpNeighbour& neighbour, const Time& time);
  // At each look: `hears` is false when the PF cannot hear now, or could not since the look before.
  void Tend(const std::string& device, bool hears, const Time& time);
  // Forgets all other PFs.
  void KeepOnly(const std::set<std::string>& devices);

  // The neighbour first, then the others.
  [[nodiscard]] std::vector<HeardNeighbour> Of(const std::string& device) const;

 private:
  struct Entry {
    HeardNeighbour heard;
    Clock::time_point expires;
    bool sure = true;  // heard since the PF could hear
  };
  std::map<std::string, std::vector<Entry>> entries_;
};

}  // namespace railhead
