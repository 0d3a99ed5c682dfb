#include "deviceplugin/services/node_index/index_config.h"

#include "netns/json/record_io.h"
#include "netns/json/record_read.h"

namespace railhead::node_index {

Result<IndexConfig> ParseIndexConfig(const std::string& json, const std::string& what,
                                     std::chrono::seconds reuse_delay, std::vector<Error>* all) {
  return ParseSection<IndexConfig>(
      json, what, "/addresses/index", all, [&](const IndexConfig& config, const record::Complain& complain) {
        if (config.reclaim.count() == 0 || config.reclaim > reuse_delay) return;
        complain("reclaimSeconds",
                 "is not more than reuseDelaySeconds (" + std::to_string(reuse_delay.count()) + ")",
                 "addresses that a removed node released last have their reuse delay, too");
      });
}

Result<IndexConfig> IndexConfigOf(const Fabric& fabric, const std::string& what, std::vector<Error>* all) {
  return ParseIndexConfig(fabric.address_index, what, ReuseDelayOf(fabric), all);
}

std::chrono::seconds ReuseDelayOf(const Fabric& fabric) {
  return std::chrono::seconds(fabric.reuse_delay_seconds.value_or(kDefaultReuseDelaySeconds));
}

}  // namespace railhead::node_index

void railhead::Shape<railhead::node_index::IndexConfig>::Check(const T& config,
                                                               const record::Complain& complain) {
  if (config.reclaim.count() != 0 && config.reclaim < 2 * config.fence) {
    complain("reclaimSeconds", "is less than twice fenceSeconds",
             "a node stops using its index long before others free it; 0: they never do");
  }
}
