// PluginServer: one resource's side of kubelet's device plugin API, on one socket.
//
// gRPC is hidden in the implementation. The latest ResourcePool answers the requests. ListAndWatch sends the
// full list at once, and again whenever an update has changed it.
//
// The socket's path must be new: no server of this process or another may have used it. When gRPC shuts down
// it removes the path, even if another server has it.
// Ownership: shares the pool; owns the socket. Threads: thread-safe; answers come from gRPC's threads.
// `streams_changed` is called from there and must not block.
// Errors: kIo when the socket cannot be served.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/allocate.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/services/kubelet/resource_activity.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead::kubelet {

// The part of a call that is worth a log line.
struct CallReport {
  std::string method;  // "Allocate", "PreStartContainer"
  std::string resource;
  std::vector<std::string> device_ids;  // sorted
  std::optional<Error> error;           // nullopt: answered
  std::vector<std::string> rewritten;   // the devices among them whose CDI specs were missing or changed
  bool cdi_unread = false;              // no container runtime read their CDI specs in time
};

// Whether kubelet has to call PreStartContainer of the resource. The call checks that all devices are
// attached, and that the CDI specs exist which the runtime reads next.
[[nodiscard]] bool NeedsPreStart(const resources::ResourcePool& pool);

class PluginServer {
 public:
  // PreferHints::paths for the pod that is being admitted.
  using Paths = std::function<std::map<PciAddress, std::vector<PciPath>>(const resources::ResourcePool&)>;

  struct Wiring {
    Root root;
    std::shared_ptr<resources::Allocator> allocator;
    std::shared_ptr<ResourceActivity> activity;
    std::function<void()> streams_changed;
    std::function<void(const CallReport&)> report;
    Paths paths;  // may be empty: no paths are known
  };

  // A resource's devices, which of them are unhealthy (nullptr: none), and those that pods have lost.
  struct View {
    std::shared_ptr<const resources::ResourcePool> pool;
    std::shared_ptr<const std::set<std::string>> unhealthy;
    std::set<std::string> lost;
  };

  // Serves when it returns: kubelet dials back before it answers Register.
  static Result<std::unique_ptr<PluginServer>> Start(const std::string& socket_path, const View& view,
                                                     Wiring wiring);
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;
  // Ends the streams and stops serving; waits for calls in progress, at most some
  // seconds.
  ~PluginServer();

  // Answers from `view` from now on. It must have the same resource and the same PreStartRequired(), since
  // kubelet asks for these only once.
  void Update(const View& view);

  // Whether the stream that was opened last is still open.
  [[nodiscard]] bool NewestStreamIsOpen() const;
  // How many ListAndWatch calls there ever were.
  [[nodiscard]] int StreamsSoFar() const;

  [[nodiscard]] const std::string& socket_path() const;
  // What Register tells kubelet.
  [[nodiscard]] bool PreStartRequired() const;

 private:
  class Impl;
  explicit PluginServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::kubelet
