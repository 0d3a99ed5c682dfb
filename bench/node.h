// The part of railheadd's benchmarks that has to be C++: it links the measured code, or speaks gRPC.
// bench/node.py does the rest.
//
// The series are of the group "node", except for changes of a link; times are wall-clock time of one thread.
// Errors: those of the measured code; kConflict when it does not do its work.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/samples.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::bench {

struct NodeRounds {
  int discovery = 20;
  int allocations = 2000;
  int preferences = 1000;
};

// Measures discovery, Allocate without waiting for the disk, preferred allocation and a health check. `root`
// is a tree on a tmpfs, where a durable write costs nothing. Then its /var/lib becomes a link to `disk`, an
// existing directory on a disk. There Allocate takes turns with one durable write by itself.
Result<void> MeasureNodeWork(const Root& root, const std::string& disk, const NodeRounds& rounds,
                             Samples* samples);

// kubelet's calls, made one by one over gRPC at a plugin's socket.
Result<void> MeasureCalls(const std::string& socket, std::vector<std::string> ids, const NodeRounds& rounds,
                          Samples* samples);

// /metrics/nics with every VF in a pod: collecting and writing the page, beside the kernel's answers alone.
// Then how long others wait for the kernel during a scrape, in the group "rtnl". Each VF has a network
// namespace of its own, in which the loopback device replaces it: the kernel gets the same requests. The PFs
// are the network devices of that name in the caller's namespace, without VFs. RDMA devices do not exist
// there.
Result<void> MeasureNics(const Root& root, int rounds, Samples* samples);
// The second part of MeasureNics(), on the node as it is: the pods are those in the journal. The PFs must
// report VFs, and RDMA devices must exist. The group is "guest-rtnl".
Result<void> MeasureRealNics(const Root& root, int rounds, Samples* samples);

// Measures how long others wait for the kernel's lock of network settings (RTNL) while `scrape` runs in a
// process that is forked from this one.
//
// It times the smallest possible change: another alias of the loopback device. That is one RTM_SETLINK under
// RTNL, like each move, address and route of a pod. RTNL is one mutex for all namespaces. Where a kernel
// splits it (CONFIG_DEBUG_NET_SMALL_RTNL), a scrape takes the lock of the PFs' namespace. The device is
// therefore in that namespace. Beside the changes a process takes turns, back to back. It does nothing;
// computes, which takes a processor and no lock; lists the links, as `ip link` does; scrapes. At the end the
// alias is removed.
Result<void> MeasureRtnl(Kernel& kernel, const char* group, int rounds,
                         const std::function<Result<void>()>& scrape, Samples* samples);

}  // namespace railhead::bench
