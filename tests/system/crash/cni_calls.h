// CNI calls as a runtime makes them, under the tracer.
// Threads: const; several may call at once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "tests/system/crash/tracer.h"

namespace railhead::crash {

struct Pod {
  std::string id;
  std::string netns;      // path
  std::string arguments;  // CNI_ARGS; empty: none
};

struct Plugin {
  std::string directory;  // of the programs: CNI_PATH
  std::string type;       // "railhead"
  std::string config;     // network configuration, JSON
  std::string ifname;
  std::string root;  // RAILHEAD_ROOT; empty: none
};

class CniCalls {
 public:
  explicit CniCalls(Plugin plugin) : plugin_(std::move(plugin)) {}

  // The result has the plugin's answer, whatever it is.
  [[nodiscard]] Result<TraceResult> Call(const std::string& command, const Pod& pod,
                                         const Tracing& tracing = {}) const;
  // The same with another network configuration.
  [[nodiscard]] Result<TraceResult> CallWith(const std::string& config, const std::string& command,
                                             const Pod& pod, const Tracing& tracing = {}) const;

  [[nodiscard]] const Plugin& plugin() const { return plugin_; }

 private:
  Plugin plugin_;
};

// The addresses in a CNI result, "10.100.0.10/24".
Result<std::vector<std::string>> AddressesOf(const std::string& output);
// The code in a CNI error; 0: the output is not a CNI error.
int ErrorCodeOf(const std::string& output);

}  // namespace railhead::crash
