// Runs a node for a while: pods come, behave badly and go, calls are killed and doubled, and the node is
// disturbed. A seed decides everything (plan.h).
//
// Checked while it runs: every call ends in time, with success or a code and a message. An undisturbed call
// succeeds. No address belongs to two pods, or is given again before the end of its reuse delay. railheadd
// does not end by itself. Checked after each round, when all pods are gone: everything is as before, bit for
// bit (tests/system/crash/snapshot.h), and no process or namespace remains. Checked at the end: each act was
// drawn often enough, and railheadd has not grown.
// Threads: Run() makes its own; the process must have called crash::Adopt().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/system/soak/node.h"

namespace railhead::soak {

struct SoakSetting {
  NodeSetting node;
  std::vector<Slot> slots;  // those of late binding last
  std::uint64_t seed = 0;
  int seconds = 60;  // at least, and until each act was drawn often enough
  int rounds = 0;    // at most; 0: as many as it takes
  bool verbose = false;
};

struct SoakReport {
  int rounds = 0;
  double seconds = 0;
  std::map<std::string, int> counts;           // of acts, by name
  std::map<int, int> codes;                    // of refused calls, by code
  std::multimap<double, std::string> longest;  // calls, in seconds
  std::vector<std::string> wrong;
};

// An error: the soak could not begin.
Result<SoakReport> RunSoak(const SoakSetting& setting);

}  // namespace railhead::soak
