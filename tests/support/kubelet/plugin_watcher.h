// PluginWatcher: kubelet's plugin manager as far as a plugin can see it (pkg/kubelet/pluginmanager,
// Kubernetes 1.36), with a handler for plugins of one type.
//
// The watcher dials every new socket of the directory and asks for the plugin's information (1 s limit). It
// passes the plugin to `connect` and reports the result to the plugin. It repeats a failed attempt with
// growing pauses. For a removed socket it calls `disconnect` with the plugin's name, once the attempt in
// progress has ended. It dials a socket once, whatever happens to the connection later. It ignores files that
// begin with a dot. kubelet watches with inotify and works once a second; a check every 20 ms replaces both
// here.
//
// Ownership: owns its threads. Threads: its threads call `connect` and `disconnect`, for several sockets at
// the same time. Stop() waits for them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

namespace railhead::testing {

struct FoundPlugin {
  std::string name;
  std::string endpoint;  // the socket itself, if the plugin names no other
  std::string version;   // the first of the plugin's that kubelet knows
};

struct PluginHandler {
  std::string type;
  std::set<std::string> versions;                          // that kubelet knows
  std::function<std::string(const FoundPlugin&)> connect;  // the error; "": kubelet has taken the plugin
  std::function<void(const std::string& name)> disconnect;
};

class PluginWatcher {
 public:
  PluginWatcher(std::string directory, PluginHandler handler);
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
    std::string name;               // empty: not registered
    Clock::time_point next_attempt;
    std::chrono::milliseconds pause{20};
    std::thread thread;
  };

  void Look();
  std::map<std::string, ino_t> Sockets() const;
  void Try(const std::string& path, Plugin* plugin);

  const std::string directory_;
  const PluginHandler handler_;
  std::map<std::string, std::unique_ptr<Plugin>> plugins_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace railhead::testing
