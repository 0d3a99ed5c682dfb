// CachedNicPage: the page of NICs (nic_page.h), collected at most once in kMaxAge, however often it is asked
// for.
//
// A collection makes the kernel hold its lock of network settings, and anybody who reaches the HTTP address
// can ask for the page. The age counts from the end of a collection: a slow driver does not make each request
// collect. Both formats are written from one collection. Ownership: owns the last collection and its pages.
// Threads: Get() from any; a call during a collection waits for it. Errors: none.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "deviceplugin/services/nic_metrics/nic_page.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/mutex.h"

namespace railhead::nic_metrics {

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
  Mutex mutex_;  // of all below, also while it is collected
  NicPageSources sources_ RH_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> collected_at_ RH_GUARDED_BY(mutex_);
  std::map<ExpositionFormat, std::string> pages_ RH_GUARDED_BY(mutex_);  // of sources_
};

}  // namespace railhead::nic_metrics
