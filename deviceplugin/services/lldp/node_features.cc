#include "deviceplugin/services/lldp/node_features.h"

#include <algorithm>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/services/lldp/node_labels.h"

namespace railhead {
namespace {

// NFD looks every minute by default; a restart of railheadd is no reason to take labels away.
constexpr std::chrono::seconds kLeastLife{3600};

}  // namespace

NodeFeatures::NodeFeatures(Root root, std::string path, std::chrono::seconds looks, Log* log)
    : root_(std::move(root)), path_(std::move(path)), life_(std::max(kLeastLife, 3 * looks)), log_(log) {}

void NodeFeatures::Planned(const Plan& plan) {
  if (path_.empty()) return;
  const std::lock_guard lock(mutex_);
  plan_ = plan;
  Write();
}

void NodeFeatures::Heard(const LeafReport& leaves) {
  if (path_.empty()) return;
  const std::lock_guard lock(mutex_);
  leaves_ = leaves;
  Write();
}

void NodeFeatures::Write() {
  if (!plan_ || !plan_->of_fabric || !leaves_) return;
  const auto written = TryToWrite();
  const std::string complaint = written ? std::string() : written.error().message;
  if (std::exchange(complaint_, complaint) != complaint && !written)
    log_->Warning("the node's labels may be out of date", written.error(), {{"file", path_}});
}

Result<void> NodeFeatures::TryToWrite() const {
  const auto fabric = RH_TRY(ReadFabric(root_, plan_->config_path));
  if (!fabric) return {};
  const auto config = RH_TRY(ReadTopologyConfig(root_));
  const auto topology = RH_TRY(Topology::Read(root_, *plan_->inventory, config));
  const NodeLabels labels = NodeLabelsOf(*fabric, *plan_->inventory, *topology, *leaves_);
  return WriteFeatureFile(root_.Path(path_), FeatureFile(labels, std::chrono::system_clock::now() + life_));
}

}  // namespace railhead
