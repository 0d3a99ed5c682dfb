// Where the rails hang, as railheadd tells it: log and metrics of LeafWatch.
// Threads: as LeafWatch, Log and Exposition.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/lldp/node_labels.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/kernel.h"
#include "netns/packet/lldp.h"

namespace railhead::lldp {

// LeafWatch: the thread of railheadd that learns where the node's rails hang, from the LLDP frames of their
// switches (netns/packet/lldp.h).
//
// It listens at the PF of each rail of the fabric that is in the host's namespace, follows PFs that come,
// go, are renamed, go into pods and come back, and judges the cabling. What it has found is in Report() and
// in /run/railhead/leaves.json, where its next start takes it up. It sends nothing and changes nothing.
// However much comes in, it looks at a few hundred frames a second at most.
//
// Ownership: borrows the kernel. Threads: its own one calls all of Calls; everything else from any.
// Errors: kIo when there are no descriptors; what fails later is told and tried again.

class LeafWatch {
 public:
  struct Calls {
    // When it says something else than before; and once at the beginning, with an empty `before`.
    std::function<void(const LeafReport& before, const LeafReport& now)> changed;
    // When it is another failure than before; `what` failed.
    std::function<void(const std::string& what, const Error& error)> failed;
  };

  static Result<std::unique_ptr<LeafWatch>> Start(const Root& root, Kernel& kernel, Calls calls);
  ~LeafWatch();
  LeafWatch(const LeafWatch&) = delete;
  LeafWatch& operator=(const LeafWatch&) = delete;

  // The node as it is now, and where its fabric is described; "": nowhere, there are no rails. Soon; does not
  // wait.
  void Update(std::shared_ptr<const inventory::Inventory> inventory, std::string fabric_path);
  [[nodiscard]] LeafReport Report() const;
  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);

 private:
  // A rail of the fabric and the PF that is it here.
  struct Port {
    RailLeaf leaf;  // without what was heard
    std::optional<LldpListener> listener;
    std::string changes;  // of its carrier, as sysfs counts them
  };
  struct Node {
    std::shared_ptr<const inventory::Inventory> inventory;
    std::string fabric_path;
  };

  LeafWatch(Root root, Kernel& kernel, Calls calls, UniqueFd wake);
  void Loop();
  void Restore();
  void TakeUpdate();
  [[nodiscard]] Result<std::vector<Port>> PortsOf(const Node& node) const;
  void Look();
  bool Listen(Port& port);
  void Publish();
  void Save(const LeafReport& report, bool changed);
  bool Wait(std::chrono::milliseconds limit, bool for_frames);
  void Hear();
  void Complain(const std::string& what, const Error& error);
  void Wake() const;

  const Root root_;
  Kernel& kernel_;
  const Calls calls_;
  const UniqueFd wake_;
  std::vector<Port> ports_;
  NeighbourTable table_;
  std::map<std::string, std::string> complaints_;  // what -> the latest error
  std::chrono::steady_clock::time_point saved_;
  bool published_ = false;
  std::atomic<bool> stopped_{false};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Node> update_;
  LeafReport report_;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

// `features` is borrowed.
Result<std::unique_ptr<LeafWatch>> StartLeafWatch(const Root& root, Kernel& kernel, NodeFeatures* features,
                                                  Log* log);

// What is different from before.
void LogLeaves(Log* log, const LeafReport& before, const LeafReport& now);

void AppendLeaves(Exposition* page, const LeafReport& report);

}  // namespace railhead::lldp
