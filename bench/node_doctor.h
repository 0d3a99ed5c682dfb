// railctl doctor with many VFs: the command as an operator runs it, beside reading the same files.
//
// The series are of the group kNode (report.h). The tree below `root` is one of node_tree.h with
// doctor_tree.h's facts. What only the kernel's sockets tell it cannot be asked of such a tree.
// Errors: kConflict when the doctor does not find what is there.
#pragma once

#include <string>

#include "bench/record.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::bench {

// `program`: path of railctl.
Result<void> MeasureDoctor(const Root& root, const std::string& program, int rounds, Record* record);

}  // namespace railhead::bench
