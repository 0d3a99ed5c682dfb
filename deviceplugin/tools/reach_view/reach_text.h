// A matrix for terminals: what is common to its faults, then who reaches whom.
//
// Marks tell it without colours. Nodes that are alike share a row and a column, rails that are alike a
// matrix. Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/reach_view/reach_faults.h"
#include "deviceplugin/tools/reach_view/reach_matrix.h"

namespace railhead {

struct ReachTextOptions {
  bool every_node = false;  // rows of their own for all
  bool colours = false;
};

std::string ReachText(const ReachMatrix& matrix, const std::vector<ReachFault>& faults,
                      const ReachTextOptions& options);

}  // namespace railhead
