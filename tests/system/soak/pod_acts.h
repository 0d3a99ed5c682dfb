// What one pod, its runtime or the host does to it; see plan.h.
// Threads: acts on different slots may run at the same time.
#pragma once

#include "tests/system/soak/node.h"
#include "tests/system/soak/plan.h"

namespace railhead::soak {

// What goes on beside the act on the node.
struct Weather {
  bool adds_may_fail = false;       // each call may: /run is full
  bool late_adds_may_fail = false;  // railheadd is away
};

void Do(Node& node, Slot& slot, const Choice& choice, const Weather& weather);

// A new pod in the slot, with its namespace.
void Come(Node& node, Slot& slot, int number, std::uint64_t seed);
// ADD; it has to succeed unless the weather is against it.
void Add(Node& node, Slot& slot, const Weather& weather);
// DEL until it succeeds, and the namespace's end. Without a pod: nothing.
void Leave(Node& node, Slot& slot);
// The host names a VF whose driver was bound again, as udev does.
void Bind(Node& node, Slot& slot);

}  // namespace railhead::soak
