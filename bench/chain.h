// Runs CNI plugins as a container runtime does: one after the other for ADD, each
// with the result of the one before as prevResult, in reverse order for DEL, each with
// ADD's result. What the runtime itself does with JSON between two plugins is not part
// of the cost.
// Threads: one object, one thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/process.h"
#include "netns/base/result.h"

namespace railhead::bench {

struct Sandbox {
  std::string id;
  std::string netns;
  std::string ifname;
};

struct ChainPlugin {
  std::string path;    // of the binary
  std::string config;  // JSON object; name, cniVersion and prevResult are added
};

// The cost of each plugin, in the order of the chain.
using ChainCost = std::vector<Cost>;
Cost Sum(const ChainCost& costs);

class Chain {
 public:
  // `root`: RAILHEAD_ROOT of the plugins; empty: none. `cni_path` as CNI_PATH.
  Chain(std::string network, std::vector<ChainPlugin> plugins, std::string cni_path, std::string root)
      : network_(std::move(network)),
        plugins_(std::move(plugins)),
        cni_path_(std::move(cni_path)),
        root_(std::move(root)) {}

  [[nodiscard]] const std::vector<ChainPlugin>& plugins() const { return plugins_; }

  Result<ChainCost> Add(const Sandbox& sandbox);
  // With the result of the last Add().
  Result<ChainCost> Del(const Sandbox& sandbox);

  // Put before every command line: a program that runs it ({} for none).
  void SetPrefix(std::vector<std::string> prefix) { prefix_ = std::move(prefix); }

  // CNI_ARGS of all calls.
  void SetArgs(std::string args) { args_ = std::move(args); }

  // The first address of the last ADD's result, "10.0.0.1/24"; empty without one.
  [[nodiscard]] std::string Address() const;

 private:
  Result<ProcessResult> Run(const ChainPlugin& plugin, const std::string& command, const Sandbox& sandbox);

  std::string network_;
  std::vector<ChainPlugin> plugins_;
  std::string cni_path_;
  std::string root_;
  std::vector<std::string> prefix_;
  std::string args_;
  std::string result_;
};

}  // namespace railhead::bench
