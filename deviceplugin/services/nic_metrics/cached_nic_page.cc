#include "deviceplugin/services/nic_metrics/cached_nic_page.h"

#include "netns/base/mutex.h"

namespace railhead::nic_metrics {

std::string CachedNicPage::Get(ExpositionFormat format) {
  const MutexLock lock(mutex_);
  if (!collected_at_ || now_() - *collected_at_ >= kMaxAge) {
    sources_ = collect_();
    collected_at_ = now_();
    pages_.clear();
  }
  const auto [page, is_new] = pages_.try_emplace(format);
  if (is_new) page->second = NicPage(sources_, format);
  return page->second;
}

}  // namespace railhead::nic_metrics
