#include "deviceplugin/services/nic_metrics/priority_counters.h"

#include <string_view>

namespace railhead::nic_metrics {
namespace {

using Kind = PriorityCounter;

// In a name, '#' stands for the priority, 0 to 7.
struct Pattern {
  std::string_view driver;
  std::string_view name;
  Kind counter;
  bool transmit;
};

constexpr Pattern kPatterns[] = {
    {"mlx5_core", "rx_prio#_pause", Kind::kPauseFrames, false},
    {"mlx5_core", "tx_prio#_pause", Kind::kPauseFrames, true},
    {"mlx5_core", "rx_prio#_pause_duration", Kind::kPauseMicroseconds, false},
    {"mlx5_core", "tx_prio#_pause_duration", Kind::kPauseMicroseconds, true},
    {"mlx5_core", "rx_prio#_bytes", Kind::kBytes, false},
    {"mlx5_core", "tx_prio#_bytes", Kind::kBytes, true},
    {"mlx5_core", "rx_prio#_discards", Kind::kDiscards, false},
    {"mlx5_core", "rx_global_pause", Kind::kPauseFrames, false},
    {"mlx5_core", "tx_global_pause", Kind::kPauseFrames, true},
    {"mlx5_core", "rx_global_pause_duration", Kind::kPauseMicroseconds, false},
    {"mlx5_core", "tx_global_pause_duration", Kind::kPauseMicroseconds, true},
    {"bnxt_en", "rx_pfc_ena_frames_pri#", Kind::kPauseFrames, false},
    {"bnxt_en", "tx_pfc_ena_frames_pri#", Kind::kPauseFrames, true},
    {"bnxt_en", "rx_bytes_pri#", Kind::kBytes, false},
    {"bnxt_en", "tx_bytes_pri#", Kind::kBytes, true},
    {"bnxt_en", "rx_pause_frames", Kind::kPauseFrames, false},
    {"bnxt_en", "tx_pause_frames", Kind::kPauseFrames, true},
    {"ice", "rx_priority_#_xoff.nic", Kind::kPauseFrames, false},
    {"ice", "tx_priority_#_xoff.nic", Kind::kPauseFrames, true},
    {"ice", "link_xoff_rx.nic", Kind::kPauseFrames, false},
    {"ice", "link_xoff_tx.nic", Kind::kPauseFrames, true},
    {"i40e", "port.rx_priority_#_xoff", Kind::kPauseFrames, false},
    {"i40e", "port.tx_priority_#_xoff", Kind::kPauseFrames, true},
    {"i40e", "port.link_xoff_rx", Kind::kPauseFrames, false},
    {"i40e", "port.link_xoff_tx", Kind::kPauseFrames, true},
    {"ixgbe", "rx_pb_#_pxoff", Kind::kPauseFrames, false},
    {"ixgbe", "tx_pb_#_pxoff", Kind::kPauseFrames, true},
    {"ixgbe", "rx_flow_control_xoff", Kind::kPauseFrames, false},
    {"ixgbe", "tx_flow_control_xoff", Kind::kPauseFrames, true},
    {"igb", "rx_flow_control_xoff", Kind::kPauseFrames, false},
    {"igb", "tx_flow_control_xoff", Kind::kPauseFrames, true},
};

struct Known {
  Kind counter;
  bool transmit;
  std::optional<int> priority;
};

struct OfDriver {
  std::vector<std::string> names;
  std::map<std::string, Known, std::less<>> known;
};

void Add(OfDriver* driver, std::string name, const Known& known) {
  driver->names.push_back(name);
  driver->known.emplace(std::move(name), known);
}

std::map<std::string, OfDriver, std::less<>> MakeTable() {
  std::map<std::string, OfDriver, std::less<>> table;
  for (const Pattern& pattern : kPatterns) {
    OfDriver& driver = table[std::string(pattern.driver)];
    const std::size_t place = pattern.name.find('#');
    if (place == std::string_view::npos) {
      Add(&driver, std::string(pattern.name), {pattern.counter, pattern.transmit, std::nullopt});
      continue;
    }
    for (int priority = 0; priority < 8; ++priority) {
      std::string name(pattern.name);
      name[place] = static_cast<char>('0' + priority);
      Add(&driver, std::move(name), {pattern.counter, pattern.transmit, priority});
    }
  }
  return table;
}

const OfDriver& Find(const std::string& driver) {
  static const std::map<std::string, OfDriver, std::less<>> kTable = MakeTable();
  static const OfDriver kUnknown;
  const auto found = kTable.find(driver);
  return found == kTable.end() ? kUnknown : found->second;
}

}  // namespace

const std::vector<std::string>& PriorityCounterNames(const std::string& driver) {
  return Find(driver).names;
}

std::vector<PriorityCount> PriorityCountsOf(const std::string& driver,
                                            const std::map<std::string, std::uint64_t>& statistics) {
  std::vector<PriorityCount> counts;
  const OfDriver& of = Find(driver);
  for (const auto& [name, value] : statistics) {
    const auto known = of.known.find(name);
    if (known == of.known.end()) continue;
    counts.push_back({known->second.counter, known->second.transmit, known->second.priority, value});
  }
  return counts;
}

}  // namespace railhead::nic_metrics
