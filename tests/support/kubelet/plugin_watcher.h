// PluginWatcher: kubelet's plugin manager as far as a device plugin can see it
// (pkg/kubelet/pluginmanager, Kubernetes 1.36).
//
// Every socket of the directory that has not been dialled yet is asked who it is (1 s limit), handed to
// `connect`, and told how that went; a failure is tried again with growing pauses. A socket that has gone
// is handed to `disconnect` with the resource's name, when what was under way with it is over. What becomes
// of a connection later is of no interest here: a socket is dialled once. Files that begin with a dot are
// passed over. kubelet watches with inotify and works once a second; here a look every 20 ms is both.
//
// Ownership: owns its threads. Threads: `connect` and `disconnect` come from them, for different sockets at
// once. Stop() waits for them.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/kubelet/messages.h"

namespace railhead::testing {

class PluginWatcher {
 public:
  using Connect = std::function<grpc::Status(const std::string& resource, const std::string& socket_path)>;
  using Disconnect = std::function<void(const std::string& resource)>;

  PluginWatcher(std::string directory, Connect connect, Disconnect disconnect);
  PluginWatcher(const PluginWatcher&) = delete;
  PluginWatcher& operator=(const PluginWatcher&) = delete;
  ~PluginWatcher() { Stop(); }

  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  // One path; when a new file has it, it is dialled anew.
  struct Plugin {
    explicit Plugin(ino_t file) : inode(file) {}
    const ino_t inode;
    std::atomic<bool> busy{false};  // the rest is its thread's meanwhile
    std::string resource;           // empty: not registered
    Clock::time_point next_attempt;
    std::chrono::milliseconds pause{20};
    std::thread thread;
  };

  void Look();
  std::map<std::string, ino_t> Sockets() const;
  void Try(const std::string& path, Plugin* plugin);

  const std::string directory_;
  const Connect connect_;
  const Disconnect disconnect_;
  std::map<std::string, std::unique_ptr<Plugin>> plugins_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace railhead::testing
