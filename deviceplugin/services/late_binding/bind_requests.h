// BindRequests: what BindServer does with the requests of ADD: each is answered, counted and logged.
//
// Ownership: borrows the log. Threads: thread-safe, as `bind` has to be. Errors: those of `bind`.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include "cni/state/bind_protocol.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/counter.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "netns/base/result.h"

namespace railhead::late_binding {

class BindRequests {
 public:
  using Binding = std::function<Result<Bindings>(const BindRequest&)>;

  // `bind`: Binder::Bind().
  BindRequests(Binding bind, Log* log) : bind_(std::move(bind)), log_(log) {}

  Result<Bindings> Bind(const BindRequest& request);
  // Call it once the answer is sent.
  void LogBinding(const BindRequest& request, const Result<Bindings>& answer);
  void Register(MetricRegistry& metrics);

 private:
  static constexpr std::size_t kErrorCodes = static_cast<std::size_t>(ErrorCode::kLimited) + 1;

  const Binding bind_;
  Log* const log_;
  Counter bound_;
  std::array<Counter, kErrorCodes> not_bound_;  // by ErrorCode
  LatencyHistogram duration_;
};

}  // namespace railhead::late_binding
