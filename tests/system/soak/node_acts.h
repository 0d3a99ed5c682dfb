// Disturbances of the node beside the pods' acts; see plan.h.
// Threads: the one that made the node.
#pragma once

#include <vector>

#include "tests/system/soak/pod_acts.h"

namespace railhead::soak {

class NodeEvent {
 public:
  NodeEvent(Node& node, std::vector<Slot>& slots, const Wave& wave)
      : node_(node), slots_(slots), wave_(wave) {}

  // Run before the pods' acts, during them, and after them.
  Weather Begin();
  void Beside();
  void End();

 private:
  void Double();
  void JumpClock();
  void FlapPfs();
  void Cut();
  void TryCutJournal(Slot& slot);
  void TryCutStore(Slot& slot);
  void TryCutState(Slot& slot);
  std::uint64_t Luck();

  Node& node_;
  std::vector<Slot>& slots_;
  const Wave& wave_;
  std::uint64_t luck_ = 0;
};

}  // namespace railhead::soak
