// Acts of one pod, its runtime, or the host on it; see plan.h.
// Threads: acts on different slots may run at the same time.
#pragma once

#include "tests/system/soak/node.h"
#include "tests/system/soak/plan.h"

namespace railhead::soak {

// The effects of the act on the node on the other acts.
struct Weather {
  bool adds_may_fail = false;       // each call may: /run is full
  bool late_adds_may_fail = false;  // railheadd is away
};

void Do(Node& node, Slot& slot, const Choice& choice, const Weather& weather);

// Makes a new pod in the slot, with its namespace.
void Come(Node& node, Slot& slot, int number, std::uint64_t seed);
// Runs ADD. It has to succeed unless the weather permits a failure.
void Add(Node& node, Slot& slot, const Weather& weather);
// Repeats DEL until it succeeds, and removes the namespace. Does nothing without a pod.
void Leave(Node& node, Slot& slot);
// Gives a VF whose driver was bound again the host's name, as udev does.
void Bind(Node& node, Slot& slot, std::chrono::milliseconds limit);

}  // namespace railhead::soak
