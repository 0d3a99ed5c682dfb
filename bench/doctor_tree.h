// What `railctl doctor` looks for, added to a made-up node (node_tree.h): a node as it should be, with
// as many processes as a GPU node has.
// Threads: not thread-safe. A tree that cannot be built ends the program (fake_sysfs.h).
#pragma once

#include <string>

namespace railhead::bench {

inline constexpr int kNodeProcesses = 2000;

// Below `directory`, where BuildNode() has been.
void AddFactsForDoctor(const std::string& directory);

}  // namespace railhead::bench
