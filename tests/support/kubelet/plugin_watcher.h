// PluginWatcher: kubelet's plugin manager as far as a device plugin can see it
// (pkg/kubelet/pluginmanager, Kubernetes 1.36).
//
// The watcher dials every new socket of the directory and asks for the plugin's name (1 s limit). It passes
// the socket to `connect` and reports the result to the plugin. It repeats a failed attempt with growing
// pauses. For a removed socket it calls `disconnect` with the resource's name, once the attempt in progress
// has ended. It dials a socket once, whatever happens to the connection later. It ignores files that begin
// with a dot. kubelet watches with inotify and works once a second; a check every 20 ms replaces both here.
//
// Ownership: owns its threads. Threads: its threads call `connect` and `disconnect`, for several sockets at
// the same time. Stop() waits for them.
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
  // One path. If a new file appears there, the watcher dials it again.
  struct Plugin {
    explicit Plugin(ino_t file) : inode(file) {}
    const ino_t inode;
    std::atomic<bool> busy{false};  // while true, only its thread uses the other fields
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
