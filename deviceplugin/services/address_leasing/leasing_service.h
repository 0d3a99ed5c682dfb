// Leasing of addresses as railheadd runs it: from configuration to thread, log and metrics.
// Threads: as LeasingLoop, Log and Exposition.
#pragma once

#include <memory>
#include <string>

#include "deviceplugin/services/address_leasing/leasing_loop.h"
#include "deviceplugin/support/kubernetes/kube_config.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// nullptr: the fabric leases nothing, or there is none.
Result<std::unique_ptr<LeasingLoop>> StartLeasing(const Root& root, const std::string& fabric_path,
                                                  const KubeService& service, Log* log);

// What a step changed. A failure that stays the same is a warning only once.
class LeasingLog {
 public:
  explicit LeasingLog(Log* log) : log_(log) {}
  void Write(const Leaser::Outcome& outcome);

 private:
  Log* log_;
  std::string known_problem_;
};

// `leasing` may be null: the families are there, without samples.
void AppendLeasing(Exposition* page, const LeasingLoop* leasing);

}  // namespace railhead
