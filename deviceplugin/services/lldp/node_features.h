// NodeFeatures: keeps the node's labels up to date in a file for Node Feature Discovery.
//
// It writes the file with the first LldpReport, then after each change and each discovery. The file expires,
// so that a node without railheadd loses its labels.
// Ownership: borrows the log. Threads: one. Errors: none; a failure is logged when it differs from the one
// before, and the next change tries again.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/lldp/node_labels.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/service/once_per_change.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::lldp {

class NodeFeatures {
 public:
  // `path`: the file, below the root; "": none is written. `looks`: the longest time between two discoveries.
  NodeFeatures(Root root, std::string path, std::chrono::seconds looks, Log* log);

  void SetNode(std::shared_ptr<const NodeSnapshot> node);
  void SetReport(const LldpReport& report);

 private:
  void Write();
  [[nodiscard]] Result<void> TryToWrite() const;

  Root root_;
  std::string path_;
  std::chrono::seconds life_;
  Log* log_;
  std::shared_ptr<const NodeSnapshot> node_;
  std::optional<LldpReport> report_;
  OncePerChange complaint_;
};

// A feature file of Node Feature Discovery's "local" source, with one NAME=VALUE per line. NFD ignores the
// file after `expires`.
std::string FeatureFile(const NodeLabels& labels, std::chrono::system_clock::time_point expires);
// Writes the file in one step. NFD reads all files of the directory except hidden ones, so it never sees a
// partial file. The directory must exist. Errors: kIo, kNotFound.
Result<void> WriteFeatureFile(const std::string& path, std::string_view content);

}  // namespace railhead::lldp
