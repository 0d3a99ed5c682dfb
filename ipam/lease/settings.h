// What leasing needs to know: who this node is, which subnets, how long everything takes.
//
// ParseLeaseSettings() reads fabric.json's `addresses.store` (docs/reference/fabric.md), whose parts of
// one kind of store only, `etcd` and `kubernetes`, are passed on as they stand.
// Errors: kInvalid with the JSON pointer. Threads: immutable values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "ipam/lease/pool_layout.h"
#include "netns/base/result.h"

namespace railhead {

struct LeaseTimes {
  using Milliseconds = std::chrono::milliseconds;
  Milliseconds renew = std::chrono::seconds(60);  // a sign of life at least this often
  Milliseconds fence = std::chrono::hours(12);    // without an answer nothing is handed out
  Milliseconds reclaim = std::chrono::hours(24);  // of silence, then blocks are taken; 0: never
  Milliseconds rest = std::chrono::minutes(10);   // after a release nobody gets the address

  // How long a claim rests: whoever had the block before the cluster store was restored has
  // renewed meanwhile, and has found out.
  [[nodiscard]] Milliseconds Probation() const { return 2 * renew; }
};

struct LeaseSettings {
  std::string node;
  std::string machine;  // tells a copied disk from the one it was copied from
  LeaseTimes times;
  std::uint64_t low_water = 0;  // free addresses of a pool below which a block is claimed
  std::vector<PoolLayout> pools;
};

enum class LeaseStoreType : std::uint8_t { kNode, kEtcd, kKubernetes };

struct LeaseStoreConfig {
  LeaseStoreType type = LeaseStoreType::kNode;
  std::uint64_t block_size = 64;
  std::uint64_t low_water = 32;
  LeaseTimes times;
  std::string etcd;        // JSON; "": not given
  std::string kubernetes;  // likewise
};

// `what` names the text in errors; "" is the default, a node store. `rest_seconds`: of the fabric.
Result<LeaseStoreConfig> ParseLeaseSettings(const std::string& json, const std::string& what,
                                            int rest_seconds);

}  // namespace railhead
