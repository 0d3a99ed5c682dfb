// NodeFeatures: the node's labels in a file for Node Feature Discovery, kept as the node is.
//
// It is first written when the rails' leaves are known as far as they are, then when something has changed
// and at each look at the node, since it expires: a node whose railheadd has gone loses its labels.
// Ownership: borrows the log. Threads: thread-safe.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

class NodeFeatures {
 public:
  // `path`: the file, below the root; "": none is written. `looks`: the time between two looks at most.
  NodeFeatures(Root root, std::string path, std::chrono::seconds looks, Log* log);

  void Planned(const Plan& plan);
  void Heard(const LeafReport& leaves);

 private:
  void Write();
  [[nodiscard]] Result<void> TryToWrite() const;

  const Root root_;
  const std::string path_;
  const std::chrono::seconds life_;
  Log* const log_;
  std::mutex mutex_;
  std::optional<Plan> plan_;
  std::optional<LeafReport> leaves_;
  std::string complaint_;
};

}  // namespace railhead
