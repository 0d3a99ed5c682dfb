#include "deviceplugin/services/lldp/node_features.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::lldp {

std::string FeatureFile(const NodeLabels& labels, std::chrono::system_clock::time_point expires) {
  std::string text = "# by railheadd, which writes it again before this is over:\n# +expiry-time=";
  text.append(FormatTime(expires)).append("\n");
  for (const auto& [name, value] : labels) text.append(name).append("=").append(value).append("\n");
  return text;
}

Result<void> WriteFeatureFile(const std::string& path, std::string_view content) {
  const auto slash = path.rfind('/');
  const std::string hidden = path.substr(0, slash + 1) + "." + path.substr(slash + 1);
  RH_TRY_WRAP(WriteAtomic(hidden, content, Sync::kVolatile, 0644), "writing " + path);
  if (std::rename(hidden.c_str(), path.c_str()) != 0) return FailSys(errno, "writing " + path);
  return {};
}

namespace {

// NFD reads the file every minute by default. A restart of railheadd must not remove the labels.
constexpr std::chrono::seconds kLeastLife{3600};

}  // namespace

NodeFeatures::NodeFeatures(Root root, std::string path, std::chrono::seconds looks, Log* log)
    : root_(std::move(root)), path_(std::move(path)), life_(std::max(kLeastLife, 3 * looks)), log_(log) {}

void NodeFeatures::SetNode(std::shared_ptr<const NodeSnapshot> node) {
  if (path_.empty()) return;
  node_ = std::move(node);
  Write();
}

void NodeFeatures::SetReport(const LldpReport& report) {
  if (path_.empty()) return;
  report_ = report;
  Write();
}

void NodeFeatures::Write() {
  if (!node_ || node_->rails() == nullptr || !report_) return;
  const auto written = TryToWrite();
  if (complaint_.IsNew(written))
    log_->Warning("the node's labels may be out of date", written.error(), {{"file", path_}});
}

Result<void> NodeFeatures::TryToWrite() const {
  const auto config = RH_TRY(topology::ReadTopologyConfig(root_));
  const auto topology = RH_TRY(topology::Topology::Read(root_, *node_->inventory, config));
  const NodeLabels labels = NodeLabelsOf(*node_->rails(), *node_->inventory, *topology, *report_);
  return WriteFeatureFile(root_.Path(path_), FeatureFile(labels, std::chrono::system_clock::now() + life_));
}

}  // namespace railhead::lldp
