// The conditions after the end of all pods.
// Threads: the one that made the node.
#pragma once

#include <map>
#include <vector>

#include "tests/system/crash/snapshot.h"
#include "tests/system/soak/node.h"

namespace railhead::soak {

// The resources that a process uses.
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

  // Records the state that has to return. railheadd runs; the node has no pod.
  Result<void> ReadBaseline();

  // Waits until every attachment is cleaned up, each device is as before, no plugin runs, and no process
  // holds a pod's namespace. Anything unmet at the limit is a fault.
  void Expect();

  // Records railheadd's resources.
  void Sample();
  // Expects that railheadd's memory, descriptors and threads do not grow over time.
  void ExpectNoGrowth();

 private:
  [[nodiscard]] Result<crash::Snapshot> Take() const;
  [[nodiscard]] std::string Left();
  Node& node_;
  crash::Snapshot baseline_;
  std::map<pid_t, std::vector<Use>> uses_;
};

}  // namespace railhead::soak
