// What a configuration asks of an interface in the pod beyond addresses and
// routes: the settings that plugins like `tuning` are chained for.
// Threads: value.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace railhead {

struct LinkTuning {
  std::vector<std::string> alt_names;
  std::optional<std::string> alias;
  std::optional<int> tx_queue_len;
  std::optional<bool> promiscuous;
  std::optional<bool> all_multicast;
  // By path below /proc/sys; in a configuration "IFNAME" stands for the interface.
  std::vector<std::pair<std::string, std::string>> sysctls;

  bool operator==(const LinkTuning&) const = default;
};

}  // namespace railhead
