#include "tests/namespace/node_index/checker.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace railhead::testing {
namespace {

struct Hold {
  std::uint64_t since_ms = 0;
  bool excused = false;
};

struct Address {
  std::map<std::string, Hold> holders;  // by node
  std::string last_node;
  std::uint64_t released_ms = 0;
};

std::string At(std::uint64_t ms) {
  return " at " + std::to_string(ms / 1000) + " s";
}

class Checker {
 public:
  explicit Checker(std::uint64_t reuse_delay_ms) : reuse_delay_ms_(reuse_delay_ms) {}

  void See(const HistoryEvent& event) {
    switch (event.kind) {
      case HistoryEvent::Kind::kHold:
        return Hold(event);
      case HistoryEvent::Kind::kRelease:
        return Release(event);
      case HistoryEvent::Kind::kExcuse:
        for (auto& [name, address] : addresses_) {
          const auto held = address.holders.find(event.node);
          if (held != address.holders.end()) held->second.excused = true;
        }
    }
  }
  std::vector<std::string> findings;

 private:
  void Hold(const HistoryEvent& event) {
    Address& address = addresses_[event.address];
    for (const auto& [node, hold] : address.holders) {
      if (hold.excused) continue;
      findings.push_back(event.address + " was given to " + event.node + At(event.time_ms) + ", but " + node +
                         " has held it since" + At(hold.since_ms));
    }
    const bool moved = !address.last_node.empty() && address.last_node != event.node;
    if (moved && event.time_ms + reuse_delay_ms_ / 100 < address.released_ms + reuse_delay_ms_) {
      findings.push_back(event.address + " was given to " + event.node + At(event.time_ms) + ", but " +
                         address.last_node + " released it" + At(address.released_ms));
    }
    address.holders[event.node] = {event.time_ms, false};
  }
  void Release(const HistoryEvent& event) {
    Address& address = addresses_[event.address];
    const auto held = address.holders.find(event.node);
    if (held == address.holders.end()) {
      findings.push_back(event.address + " was released by " + event.node + ", which did not hold it");
      return;
    }
    if (!held->second.excused) {
      address.last_node = event.node;
      address.released_ms = event.time_ms;
    }
    address.holders.erase(held);
  }

  const std::uint64_t reuse_delay_ms_;
  std::map<std::string, Address> addresses_;
};

}  // namespace

std::vector<std::string> CheckHistory(const std::vector<HistoryEvent>& history,
                                      std::uint64_t reuse_delay_ms) {
  Checker checker(reuse_delay_ms);
  for (const HistoryEvent& event : history) checker.See(event);
  return std::move(checker.findings);
}

std::vector<std::string> CheckUses(const std::vector<IndexUse>& uses) {
  std::vector<std::string> findings;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    for (std::size_t j = i + 1; j < uses.size(); ++j) {
      const IndexUse& a = uses[i];
      const IndexUse& b = uses[j];
      const std::uint64_t from_ms = std::max(a.from_ms, b.from_ms);
      if (a.index != b.index || a.node == b.node || from_ms >= std::min(a.until_ms, b.until_ms)) continue;
      findings.push_back("index " + std::to_string(a.index) + " was of " + a.node + " and of " + b.node +
                         At(from_ms));
    }
  }
  return findings;
}

}  // namespace railhead::testing
