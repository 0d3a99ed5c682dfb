#include "deviceplugin/support/metrics/metric_registry.h"

#include <utility>

namespace railhead {

void MetricRegistry::Add(MetricType type, std::string_view name, std::string_view help, Collect collect) {
  families_.push_back({type, std::string(name), std::string(help), std::move(collect)});
}

void MetricRegistry::Add(std::string_view name, std::string_view help, const Counter& counter) {
  Add(MetricType::kCounter, name, help, [&counter](Exposition& page) { page.Sample({}, counter.value()); });
}

std::string MetricRegistry::Page(ExpositionFormat format) const {
  Exposition page(format);
  for (const Family& family : families_) {
    if (family.type) page.Begin(*family.type, family.name, family.help);
    family.collect(page);
  }
  return std::move(page).Finish();
}

}  // namespace railhead
