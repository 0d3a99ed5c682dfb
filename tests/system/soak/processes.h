// The processes below this one, for a report of what waits for what.
// Threads: any.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace railhead::soak {

// This process and its living descendants with all their threads: each one's state, its tracer, and where it
// waits in the kernel. A process that has ended is shown only while it is traced.
std::string DescribeProcesses();

// Kills all descendants. false: some are still alive at the limit.
bool KillDescendants(std::chrono::milliseconds limit);

}  // namespace railhead::soak
