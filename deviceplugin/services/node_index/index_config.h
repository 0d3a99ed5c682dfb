// `addresses.index` of fabric.json: where a node's index comes from.
//
//   `{"from": "nodes" | "kubernetes", "fenceSeconds": 43200, "reclaimSeconds": 86400, "kubernetes": {...}}`
//
// `kubernetes` is the object of KubeConfig (deviceplugin/support/kubernetes/kube_access.h).
// Threads: pure functions over files. Errors: kInvalid, kMalformed, with the JSON pointer.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/node_index/index_store.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead::node_index {

enum class IndexSource : std::uint8_t { kNodes, kKubernetes };

struct IndexConfig {
  IndexSource from = IndexSource::kNodes;
  std::chrono::seconds fence = kDefaultFence;
  std::chrono::seconds reclaim = kDefaultReclaim;  // 0: no claim is removed
  KubeConfig kubernetes;

  bool operator==(const IndexConfig&) const = default;
};

// `json`: Fabric::address_index; "" is the default. `what` names the fabric's file in errors, of which the
// result has the first and `all` gets all. `reuse_delay`: the fabric's.
Result<IndexConfig> ParseIndexConfig(const std::string& json, const std::string& what,
                                     std::chrono::seconds reuse_delay, std::vector<Error>* all = nullptr);
Result<IndexConfig> IndexConfigOf(const Fabric& fabric, const std::string& what,
                                  std::vector<Error>* all = nullptr);
// Of a file. Succeeds without one, too.
Result<void> CheckIndexConfig(const Root& root, const std::string& fabric_path);

std::chrono::seconds ReuseDelayOf(const Fabric& fabric);

}  // namespace railhead::node_index

template <>
struct railhead::Names<railhead::node_index::IndexSource> {
  using enum node_index::IndexSource;
  static constexpr std::array kAll = {std::pair{"nodes", kNodes}, std::pair{"kubernetes", kKubernetes}};
};

template <>
struct railhead::Shape<railhead::node_index::IndexConfig> {
  using T = node_index::IndexConfig;
  static void List(auto& f) {
    f("from", &T::from);
    f("fenceSeconds", &T::fence, {.min = 1, .max = kYear});
    f("reclaimSeconds", &T::reclaim, {.min = 0, .max = kYear});
    f("kubernetes", &T::kubernetes);
  }
  static void Check(const T& config, const record::Complain& complain);

 private:
  static constexpr std::int64_t kYear = std::int64_t{365} * 24 * 3600;
};
