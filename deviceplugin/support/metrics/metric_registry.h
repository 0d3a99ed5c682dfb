// MetricRegistry: the metrics of railheadd, each registered where its events are counted.
//
//   metrics.Add("railhead_reconcile_passes", "Reconcile passes over NICs, addresses and files", passes_);
//   metrics.Add(MetricType::kGauge, "railhead_registered", "1 while ...", [this](Exposition& page) {
//     for (...) page.Sample({{"resource", name}}, value);
//   });
//
// Ownership: borrows what it reads, which outlives it. Threads: Add() before the first Page(), which is
// thread-safe if the collectors are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deviceplugin/support/metrics/counter.h"
#include "deviceplugin/support/metrics/exposition.h"

namespace railhead {

class MetricRegistry {
 public:
  // Writes the samples of a family.
  using Collect = std::function<void(Exposition&)>;

  void Add(MetricType type, std::string_view name, std::string_view help, Collect collect);
  // Families that are read at once: `collect` begins each of them.
  void AddGroup(Collect collect) { families_.push_back({std::nullopt, {}, {}, std::move(collect)}); }
  // A family of one sample without labels.
  void Add(std::string_view name, std::string_view help, const Counter& counter);

  [[nodiscard]] std::string Page(ExpositionFormat format) const;

 private:
  struct Family {
    std::optional<MetricType> type;  // nullopt: a group
    std::string name;
    std::string help;
    Collect collect;
  };
  std::vector<Family> families_;
};

}  // namespace railhead
