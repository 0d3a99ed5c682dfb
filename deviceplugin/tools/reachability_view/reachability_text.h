// A matrix for terminals: first its common faults, then which node reaches which.
//
// Marks show it without colours. Nodes with equal rows and columns share them, and equal rails share a
// matrix. Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/reachability_view/reachability_faults.h"
#include "deviceplugin/tools/reachability_view/reachability_matrix.h"

namespace railhead::reachability_view {

struct ReachabilityTextOptions {
  bool every_node = false;  // a separate row for every node
  bool colours = false;
};

std::string ReachabilityText(const ReachabilityMatrix& matrix, const std::vector<ReachabilityFault>& faults,
                             const ReachabilityTextOptions& options);

}  // namespace railhead::reachability_view
