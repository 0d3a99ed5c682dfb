// The IPAM plugins alone, as processes: on empty and on full pools, for many rails at once, and
// many of them at once.
//
// Both plugins keep their state on the same disk. host-local syncs nothing, railhead-ipam every
// commit; beside them the disk alone: as many synced writes as the commits need.
// Threads: as many as the burst has processes. Errors: what could not be measured.
#pragma once

#include <string>

#include "bench/record.h"
#include "netns/base/result.h"

namespace railhead::bench {

struct IpamSetting {
  std::string programs;  // directory of railhead-ipam
  std::string peers;     // directory of host-local
  std::string disk;      // an empty directory on a disk
  int rounds = 50;
  int taken = 900;
  int crowd = 100'000;
  int burst = 32;         // processes at once
  int burst_rounds = 20;  // of each
  int pods = 1000;
};

Result<void> MeasureIpam(const IpamSetting& setting, Record* record);

}  // namespace railhead::bench
