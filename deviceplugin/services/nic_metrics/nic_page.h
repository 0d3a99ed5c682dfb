// The page at /metrics/nics: what every NIC counts, by device, rail and pod.
//
// A page of its own, since it is as long as the node has NICs in pods, and takes as long as their drivers do.
// What bounds it: PFs of pools, devices in pods, and the counters of their drivers. Threads: pure functions.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/node/health/device_health.h"
#include "deviceplugin/services/nic_metrics/collector.h"
#include "deviceplugin/support/metrics/exposition.h"

namespace railhead::nic_metrics {

struct NicPageSources {
  NicReport report;
  std::vector<health::DeviceHealth> health;
  std::set<AttachmentKey> drifted;  // NICs differ from their NCCL configuration
  std::chrono::nanoseconds took{0};
};

std::string NicPage(const NicPageSources& sources, ExpositionFormat format);

// CachedNicPage: the page of NICs (nic_page.h), collected at most once in kMaxAge, however often it is asked
// for.
//
// A collection makes the kernel hold its lock of network settings, and anybody who reaches the HTTP address
// can ask for the page. The age counts from the end of a collection: a slow driver does not make each request
// collect. Both formats are written from one collection. Ownership: owns the last collection and its pages.
// Threads: Get() from any; a call during a collection waits for it. Errors: none.

class CachedNicPage {
 public:
  using Clock = std::chrono::steady_clock;
  using Collect = std::function<NicPageSources()>;
  using Now = std::function<Clock::time_point()>;

  static constexpr std::chrono::seconds kMaxAge{5};

  explicit CachedNicPage(Collect collect, Now now = Clock::now)
      : collect_(std::move(collect)), now_(std::move(now)) {}

  std::string Get(ExpositionFormat format);

 private:
  const Collect collect_;
  const Now now_;
  std::mutex mutex_;  // of all below, also while it is collected
  NicPageSources sources_;
  std::optional<Clock::time_point> collected_at_;
  std::map<ExpositionFormat, std::string> pages_;  // of sources_
};

}  // namespace railhead::nic_metrics
