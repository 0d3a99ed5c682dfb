#include "bench/chain.h"

#include <nlohmann/json.hpp>

#include "netns/json/json_reader.h"

namespace railhead::bench {

Cost Sum(const ChainCost& costs) {
  Cost sum;
  for (const auto& cost : costs) sum += cost;
  return sum;
}

Result<ProcessResult> Chain::Run(const ChainPlugin& plugin, const std::string& command,
                                 const Sandbox& sandbox) {
  const auto document = RH_TRY(JsonDocument::Parse(plugin.config, "configuration of " + plugin.path));
  nlohmann::json config = document.json();
  config["cniVersion"] = "1.0.0";
  config["name"] = network_;
  if (!result_.empty()) {
    const auto previous = RH_TRY(JsonDocument::Parse(result_, "result before " + plugin.path));
    config["prevResult"] = previous.json();
  }
  ProcessCall call;
  call.path = plugin.path;
  if (!prefix_.empty()) {
    call.path = prefix_.front();
    call.arguments.assign(prefix_.begin() + 1, prefix_.end());
    call.arguments.push_back(plugin.path);
  }
  call.environment = {"CNI_COMMAND=" + command,     "CNI_CONTAINERID=" + sandbox.id,
                      "CNI_NETNS=" + sandbox.netns, "CNI_IFNAME=" + sandbox.ifname,
                      "CNI_PATH=" + cni_path_,      "PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  if (!args_.empty()) call.environment.push_back("CNI_ARGS=" + args_);
  if (!root_.empty()) call.environment.push_back("RAILHEAD_ROOT=" + root_);
  call.input = config.dump();
  return WithContext(RunProcess(call), command);
}

Result<ChainCost> Chain::Add(const Sandbox& sandbox) {
  result_.clear();
  ChainCost costs;
  for (const auto& plugin : plugins_) {
    ProcessResult result = RH_TRY(Run(plugin, "ADD", sandbox));
    costs.push_back(result.cost);
    result_ = std::move(result.output);
  }
  return costs;
}

Result<ChainCost> Chain::Del(const Sandbox& sandbox) {
  ChainCost costs(plugins_.size());
  for (std::size_t i = plugins_.size(); i-- > 0;) {
    costs[i] = RH_TRY(Run(plugins_[i], "DEL", sandbox)).cost;
  }
  return costs;
}

std::string Chain::Address() const {
  const auto document = JsonDocument::Parse(result_, "result");
  if (!document) return {};
  JsonReader reader = document->Root();
  for (JsonReader& ip : reader.Objects("ips")) return ip.String("address").value_or("");
  return {};
}

}  // namespace railhead::bench
