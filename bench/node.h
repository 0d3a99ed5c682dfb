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
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::bench {

struct NodeRounds {
  int discovery = 20;
  int allocations = 2000;
  int preferences = 1000;
};

// Looking at the node, Allocate without waiting for the disk, preferred allocation, a look at health. `root`
// is a tree on a tmpfs, where a durable write costs nothing. Then its /var/lib is made a link to `disk`, an
// existing directory on a disk, and Allocate takes turns with one durable write by itself.
Result<void> MeasureNodeWork(const Root& root, const std::string& disk, const NodeRounds& rounds,
                             Samples* samples);

// kubelet's calls, made one by one over gRPC at a plugin's socket.
Result<void> MeasureCalls(const std::string& socket, std::vector<std::string> ids, const NodeRounds& rounds,
                          Samples* samples);

// /metrics/nics with every VF in a pod: collecting and writing the page, beside the kernel's answers alone;
// then how long others wait for the kernel meanwhile, of the group "rtnl". Each VF is in a network namespace
// of its own, where the loopback device stands for it: what is asked of the kernel is the same. PFs are the
// network devices of that name in the caller's namespace, without VFs; RDMA devices are not there.
Result<void> MeasureNics(const Root& root, int rounds, Samples* samples);
// The second part on the node as it is: what the journal has in pods, with PFs that tell of VFs and RDMA
// devices, which have to be there. Of the group "guest-rtnl".
Result<void> MeasureRealNics(const Root& root, int rounds, Samples* samples);

// How long others wait for the kernel's lock of network settings (RTNL) while `scrape` is done, in a process
// that is forked from this one.
//
// Measured is the smallest change that there is, another alias of the loopback device: RTM_SETLINK, done
// under RTNL as each move, address and route of a pod is. RTNL is one mutex for all namespaces; where a
// kernel splits it (CONFIG_DEBUG_NET_SMALL_RTNL), the part that belongs to the namespace of the PFs is
// contended, so the device is of that one. Beside it a process does by turns nothing; computes, which takes a
// processor and no lock; lists the links, as `ip link` does; scrapes. All back to back. The alias is taken
// away in the end.
Result<void> MeasureRtnl(Kernel& kernel, const char* group, int rounds,
                         const std::function<Result<void>()>& scrape, Samples* samples);

}  // namespace railhead::bench
