// LldpService: finds the switch port of each rail from LLDP frames (netns/packet/lldp_listener.h).
//
// It listens on the PF of each rail while that PF is in the host's netns. It follows PFs that appear,
// disappear, are renamed or move to pods, and judges the cabling. The published report and
// /run/railhead/lldp.json have the result; the next start reads the file. Labels that follow from it go to a
// file for Node Feature Discovery, if there is a path for it. The service sends nothing and changes nothing.
// It reads a few hundred frames a second at most.
//
// Ownership: borrows all but the root. Threads: as Service; report() from any.
// Errors: none; a failure is logged when it differs from the one before, and retried.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/lldp/neighbor_table.h"
#include "deviceplugin/services/lldp/node_features.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/once_per_change.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/packet/lldp_listener.h"

namespace railhead::lldp {

class LldpService : public Service {
 public:
  LldpService(Root root, Kernel& kernel, const Published<NodeSnapshot>& node, NodeFeatures features,
              Log* log);

  [[nodiscard]] std::string_view name() const override { return "lldp"; }
  void Register(MetricRegistry& metrics) override;
  Result<void> Run(Worker& worker) override;

  [[nodiscard]] const Published<LldpReport>& report() const { return report_; }

 private:
  // A rail of the fabric and its PF on this node.
  struct Port {
    RailNeighbor rail;  // without neighbors
    std::optional<LldpListener> listener;
    std::string changes;  // of its carrier, as sysfs counts them
  };

  void Restore();
  void TakeNode();
  void CheckPorts();
  bool Listen(Port& port);
  void Publish();
  void Save(const LldpReport& report, bool changed);
  // Whether frames may be waiting.
  bool AwaitFrames(Worker& worker);
  void ReceiveFrames();
  void Complain(const std::string& what, const Error& error);

  const Root root_;
  Kernel& kernel_;
  const Published<NodeSnapshot>& node_;
  NodeFeatures features_;
  Log* const log_;
  std::shared_ptr<const NodeSnapshot> known_;  // what `ports_` follow from
  std::vector<Port> ports_;
  NeighborTable table_;
  std::map<std::string, OncePerChange> complaints_;  // by what failed
  std::chrono::steady_clock::time_point saved_;
  bool published_ = false;
  Published<LldpReport> report_;
};

// Logs the differences between two reports.
void LogLldpChanges(Log* log, const LldpReport& before, const LldpReport& now);

}  // namespace railhead::lldp
