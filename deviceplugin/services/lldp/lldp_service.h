// LLDP in railheadd: the thread that receives frames, its log and its metrics.
// Threads: as LldpWatch, Log and Exposition.
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
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/unique_fd.h"
#include "netns/kernel.h"
#include "netns/packet/lldp_listener.h"

namespace railhead::lldp {

// LldpWatch: the thread of railheadd that finds the switch port of each rail from LLDP frames
// (netns/packet/lldp_listener.h).
//
// It listens on the PF of each rail while that PF is in the host's netns. It follows PFs that appear,
// disappear, are renamed or move to pods, and judges the cabling. Report() and /run/railhead/lldp.json have
// the result; the next start reads the file. The thread sends nothing and changes nothing. It reads a few
// hundred frames a second at most.
//
// Ownership: borrows the kernel. Threads: its own one calls all of Calls; all others from any.
// Errors: kIo when no descriptor is free. A later failure goes to Calls::failed and is retried.

class LldpWatch {
 public:
  struct Calls {
    // When the report differs from the one before. Also once at the beginning, with an empty `before`.
    std::function<void(const LldpReport& before, const LldpReport& now)> changed;
    // When the failure differs from the one before. `what` is the step that failed.
    std::function<void(const std::string& what, const Error& error)> failed;
  };

  static Result<std::unique_ptr<LldpWatch>> Start(const Root& root, Kernel& kernel, Calls calls);
  ~LldpWatch();
  LldpWatch(const LldpWatch&) = delete;
  LldpWatch& operator=(const LldpWatch&) = delete;

  // The present node, and the path of its fabric; "": no fabric, so no rails. Takes effect soon; does not
  // wait.
  void Update(std::shared_ptr<const inventory::Inventory> inventory, std::string fabric_path);
  [[nodiscard]] LldpReport Report() const;
  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);

 private:
  // A rail of the fabric and its PF on this node.
  struct Port {
    RailNeighbor rail;  // without neighbors
    std::optional<LldpListener> listener;
    std::string changes;  // of its carrier, as sysfs counts them
  };
  struct Node {
    std::shared_ptr<const inventory::Inventory> inventory;
    std::string fabric_path;
  };

  LldpWatch(Root root, Kernel& kernel, Calls calls, UniqueFd wake);
  void Loop();
  void Restore();
  void TakeUpdate();
  [[nodiscard]] Result<std::vector<Port>> PortsOf(const Node& node) const;
  void CheckPorts();
  bool Listen(Port& port);
  void Publish();
  void Save(const LldpReport& report, bool changed);
  bool Wait(std::chrono::milliseconds limit, bool for_frames);
  void ReceiveFrames();
  void Complain(const std::string& what, const Error& error);
  void Wake() const;

  const Root root_;
  Kernel& kernel_;
  const Calls calls_;
  const UniqueFd wake_;
  std::vector<Port> ports_;
  NeighborTable table_;
  std::map<std::string, std::string> complaints_;  // what -> the latest error
  std::chrono::steady_clock::time_point saved_;
  bool published_ = false;
  std::atomic<bool> stopped_{false};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Node> update_;
  LldpReport report_;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

// `features` is borrowed.
Result<std::unique_ptr<LldpWatch>> StartLldpWatch(const Root& root, Kernel& kernel, NodeFeatures* features,
                                                  Log* log);

// Logs the differences between two reports.
void LogLldpChanges(Log* log, const LldpReport& before, const LldpReport& now);

void AppendLldpMetrics(Exposition* page, const LldpReport& report);

}  // namespace railhead::lldp
