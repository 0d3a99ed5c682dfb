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
// Update() changes the advertisement while the registrar runs. A resource that stays keeps its server and its
// stream. For a resource that was dropped, the stream gets an empty list. If the stream ended, kubelet would
// keep the resource's capacity in the node for minutes.
//
// Ownership: owns the servers. Threads: Run() on one thread, Stop() and Update() from any; `sink`
// is called from Run()'s thread and from gRPC's threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/kubelet/plugin_server.h"
#include "deviceplugin/services/kubelet/resource_activity.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::kubelet {

enum class EventKind : std::uint8_t {
  kServing,         // detail: the socket's path
  kRegistered,      // detail: kubelet's socket
  kRegisterFailed,  // error; repeated only when it changes
  kServeFailed,     // error
  kKubeletGone,     // kubelet dropped the resource; detail: why we think so
  kStandby,         // detail: the newer server's socket
  kCall,            // a call of kubelet's; error when it was refused
};

struct Event {
  EventKind kind;
  std::string resource;
  std::string detail;
  std::vector<std::string> device_ids;
  std::optional<Error> error;
  std::vector<std::string> rewritten;  // CallReport::rewritten
  bool cdi_unread = false;             // CallReport::cdi_unread
};

class Registrar {
 public:
  struct Options {
    Root root;
    std::string kubelet_directory;  // of kubelet.sock and of our sockets, as seen by this process
    // Distinguishes our sockets from those of other processes, also across containers in which every process
    // is number 1.
    std::string socket_tag;
    PluginServer::Paths paths;  // of all resources' servers
    // Called by Run() at each step; its argument is the longest time until the next call.
    std::function<void(std::chrono::seconds)> alive;  // may be empty
  };
  using Sink = std::function<void(const Event&)>;

  Registrar(Options options, const Advertisement& advertisement, Sink sink);
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;
  ~Registrar();

  // Serves and registers until Stop(). Then it ends the streams, removes the sockets and returns. A returned
  // error is one that a retry cannot fix (no inotify, no memory).
  Result<void> Run();
  void Stop();
  void Update(Advertisement advertisement);
  // Of every resource that was ever advertised, in that order. From any thread.
  [[nodiscard]] std::vector<std::shared_ptr<const ResourceActivity>> Activities() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace railhead::kubelet
