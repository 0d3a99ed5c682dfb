// What has to hold when all pods are gone.
// Threads: that which made the node.
#pragma once

#include <map>
#include <vector>

#include "tests/crash/snapshot.h"
#include "tests/soak/node.h"

namespace railhead::soak {

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
  // Its memory, descriptors and threads do not grow with what it has done: of each process
  // the last sample against the first ones.
  void ExpectNoGrowth();

 private:
  struct Use {
    long kilobytes = 0;
    long threads = 0;
    long descriptors = 0;
  };
  [[nodiscard]] Result<crash::Snapshot> Take() const;
  [[nodiscard]] std::string Left();
  Node& node_;
  crash::Snapshot baseline_;
  std::map<pid_t, std::vector<Use>> uses_;
};

}  // namespace railhead::soak
