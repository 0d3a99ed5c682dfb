// What has to hold when all pods are gone.
// Threads: that which made the node.
#pragma once

#include <map>
#include <vector>

#include "tests/system/crash/snapshot.h"
#include "tests/system/soak/node.h"

namespace railhead::soak {

// What a process uses.
struct Use {
  long kilobytes = 0;
  long threads = 0;
  long descriptors = 0;
};
// The samples are one process's, in order. A leak lifts the least that the process uses; a busy wave
// lifts only the most. So the process grows if its last samples all exceed its first ones by a slack.
// False for a process that did not live long enough to tell.
bool Grows(const std::vector<Use>& samples);

class Invariants {
 public:
  explicit Invariants(Node& node) : node_(node) {}

  // The state that has to come back; railheadd runs, no pod is there.
  Result<void> ReadBaseline();

  // Waits for it: nothing of an attachment is left, each device is as before, no plugin runs, no
  // pod's namespace is held. What is still missing then is wrong.
  void Expect();

  // Notes what railheadd uses.
  void Sample();
  // Its memory, descriptors and threads do not grow with what it has done.
  void ExpectNoGrowth();

 private:
  [[nodiscard]] Result<crash::Snapshot> Take() const;
  [[nodiscard]] std::string Left();
  Node& node_;
  crash::Snapshot baseline_;
  std::map<pid_t, std::vector<Use>> uses_;
};

}  // namespace railhead::soak
