// Registrar: keeps every resource registered with kubelet.
//
// Per resource it serves on a socket of its own and registers. It registers again in these cases.
//
//   - kubelet.sock has changed: kubelet has restarted.
//
//   - Our socket's file is gone: a starting kubelet removes all sockets in its directory. Then the registrar
//     also serves on a new path.
//
//   - kubelet has dropped ListAndWatch while it kept its socket. Only the stream counts that kubelet opened
//     after the last Register.
//
//   - Another railheadd process has given up the resource. If two run, as during an update, the older one is
//     on standby while the newer one serves. Otherwise the two would take the resource from each other again
//     and again. The older one keeps its stream, so that nothing ends before the newer one has registered.
//
// registration_table.h has each resource's states and what leads from one to the next. This class does the
// I/O: it reads sockets and streams, reports events to each resource's machine, and does what the machine
// returns.
//
// kubelet's socket is identified by inode and creation time, so a late event, after the registration with
// that very socket, has no effect. Failures are tried again with growing pauses, and at once when
// kubelet.sock changes. Devices are always sent with their last known health, never as unhealthy in between:
// kubelet would refuse a pod that it admits in that window.
// It follows the advertisement. A resource that stays keeps its server and its stream. For a resource that
// was dropped, the stream gets an empty list. If the stream ended, kubelet would keep the resource's capacity
// in the node for minutes.
//
// Ownership: owns the servers, borrows the published values and the log. Threads: as Service; activities()
// and standby() from any. Errors: of Run(): what a retry cannot fix (no inotify, no memory, a directory whose
// path is too long).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/node/snapshot/advertisement.h"
#include "deviceplugin/services/kubelet/plugin_server.h"
#include "deviceplugin/services/kubelet/resource_activity.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::kubelet {

// What must be so before anything is advertised, as far as it comes in time: kubelet does not wait for ever.
struct Precondition {
  const Published<bool>& met;
  std::string_view what;  // for people, of one that is not met: "the first reconcile pass is not done"
};

class Registrar : public Service {
 public:
  struct Options {
    Root root;
    std::string kubelet_directory;  // of kubelet.sock and of our sockets, as seen by this process
    // Distinguishes our sockets from those of other processes, also across containers in which every process
    // is number 1.
    std::string socket_tag;
    PluginServer::Paths paths;  // of all resources' servers
    std::vector<Precondition> preconditions;
  };

  Registrar(Options options, const Published<std::optional<Advertisement>>& advertisement, Log* log);
  ~Registrar() override;

  [[nodiscard]] std::string_view name() const override { return "registrar"; }
  void Register(MetricRegistry& metrics) override;
  // Serves and registers until the stop. Then it ends the streams, removes the sockets and returns.
  Result<void> Run(Worker& worker) override;

  // Of every resource that was ever advertised, in that order.
  [[nodiscard]] std::vector<std::shared_ptr<const ResourceActivity>> Activities() const;
  // Why nothing is served yet; "": serving has begun.
  [[nodiscard]] std::string NotServing() const;
  // There are resources, and a newer process serves all of them, even if kubelet still has our streams.
  [[nodiscard]] const Published<bool>& standby() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace railhead::kubelet
