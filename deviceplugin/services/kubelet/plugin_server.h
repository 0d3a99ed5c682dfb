// PluginServer: one resource's side of kubelet's device plugin API, on one socket.
//
// gRPC is hidden in the implementation. Requests are answered from the ResourcePool that
// was given last; ListAndWatch sends the full list at once, and again whenever an update
// has made it another one.
//
// The socket's path must not have been used by any other server, of this process or
// another: gRPC removes the path when it shuts down, whoever has it by then.
// Ownership: shares the pool; owns the socket. Threads: thread-safe; answers come from
// gRPC's threads. `streams_changed` is called from there and must not block.
// Errors: kIo when the socket cannot be served.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/allocate.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/services/kubelet/advertisement.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_path.h"

namespace railhead::kubelet {

// What of a call is worth a log line.
struct CallReport {
  std::string method;  // "Allocate", "PreStartContainer"
  std::string resource;
  std::vector<std::string> device_ids;  // sorted
  std::optional<Error> error;           // nullopt: answered
  std::vector<std::string> rewritten;   // of them, those whose CDI specs were missing or changed
  bool cdi_unread = false;              // no container runtime read their CDI specs in time
};

// What kubelet's plugin watcher said last (NotifyRegistrationStatus).
struct WatcherVerdict {
  int number = 0;        // of its verdicts; 0: it has said nothing yet
  bool pending = false;  // it has asked who we are, and is about to say
  std::chrono::steady_clock::time_point asked_at;
  bool registered = false;
  std::string error;
  int streams_before = 0;  // StreamsSoFar() when it asked
};

class PluginServer {
 public:
  // PreferHints::paths for the pod that is being admitted.
  using Paths = std::function<std::map<PciAddress, std::vector<PciPath>>(const resources::ResourcePool&)>;

  struct Wiring {
    Root root;
    std::shared_ptr<resources::Allocator> allocator;
    std::shared_ptr<ResourceActivity> activity;
    std::function<void()> streams_changed;  // or there is a new verdict
    std::function<void(const CallReport&)> report;
    Paths paths;           // may be empty: nothing is known
    bool watched = false;  // answers kubelet's plugin watcher, too
  };

  // A resource's devices, and which of them are unhealthy (nullptr: none).
  struct View {
    std::shared_ptr<const resources::ResourcePool> pool;
    std::shared_ptr<const std::set<std::string>> unhealthy;
  };

  // Serves when it returns: kubelet dials back before it answers Register.
  static Result<std::unique_ptr<PluginServer>> Start(const std::string& socket_path, View view,
                                                     Wiring wiring);
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;
  // Ends the streams and stops serving; waits for calls in progress, at most some
  // seconds.
  ~PluginServer();

  // Answers from `view` from now on. It is of the same resource, and of the same
  // PreStartRequired(), which kubelet asks for only once.
  void Update(View view);

  // ListAndWatch calls that are open.
  [[nodiscard]] int OpenStreams() const;
  // Whether the one that was opened last still is.
  [[nodiscard]] bool NewestStreamIsOpen() const;
  // How many ListAndWatch calls there ever were.
  [[nodiscard]] int StreamsSoFar() const;

  [[nodiscard]] WatcherVerdict LastVerdict() const;

  [[nodiscard]] const std::string& socket_path() const;
  [[nodiscard]] const std::string& resource() const;
  // What Register tells kubelet.
  [[nodiscard]] bool PreStartRequired() const;

 private:
  class Impl;
  explicit PluginServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::kubelet
