// The matrix as a picture: a square for each rail, a cell for each pair of nodes.
//
// One SVG document that needs nothing else, as topology/picture.h. Pointing at cells shows who they are. What
// is well is the ground, and cells of a row that are alike are one rectangle, so that a picture of a thousand
// nodes stays small while few of them are ill.
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/reach_view/reach_faults.h"
#include "deviceplugin/tools/reach_view/reach_matrix.h"

namespace railhead {

std::string DrawReach(const ReachMatrix& matrix, const std::vector<ReachFault>& faults);

}  // namespace railhead
