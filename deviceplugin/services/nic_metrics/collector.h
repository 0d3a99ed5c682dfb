// Collects what the node's NICs have counted, when it is asked for: the PFs of all pools, and what pods have.
//
// One message per PF (with its VFs), one per NIC in a pod, two per RDMA device that is used; nothing is kept
// between two calls but sockets in the host's namespace. A pod that ends meanwhile is left out. A driver that
// asks its firmware for each VF answers as slowly as that does, and one that hangs holds the caller for as
// long: call it where nobody waits. Ownership: borrows the kernel. Threads: one call at a time. Errors: never
// as a whole; what could not be read is among `problems`.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal_cache.h"
#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/nic_metrics/counter_source.h"
#include "deviceplugin/services/nic_metrics/nic_sample.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

struct NicReport {
  std::vector<NicSample> nics;  // by device
  std::vector<Error> problems;
};

class NicCollector {
 public:
  // `open` may be null: then nothing is counted.
  NicCollector(Root root, Kernel& kernel, OpenCounterSource open)
      : root_(root), kernel_(kernel), open_(std::move(open)), journal_(std::move(root)) {}

  // `free`: also the VFs of pools that no pod has.
  NicReport Collect(const Offer& offer, bool free);

 private:
  using Nics = std::map<std::string, NicSample>;
  using RdmaDevices = std::map<std::string, RdmaDevice>;

  Result<void> OpenHost();
  void Count(const JournalCache::Entries& attachments, Nics* nics, std::vector<Error>* problems);
  [[nodiscard]] Result<RdmaDevices> RdmaDevicesOf(const NetNs& ns);
  Result<void> ReadPort(NicSample* port, Nics* nics);
  Result<void> ReadPod(const JournalEntry& entry, Nics* nics);
  static Result<void> ReadRdma(CounterSource* source, const RdmaDevices& devices, NicSample* nic);

  Root root_;
  Kernel& kernel_;
  OpenCounterSource open_;
  std::optional<NetNs> host_ns_;  // these two once they have been needed
  std::unique_ptr<CounterSource> host_;
  JournalCache journal_;
};

}  // namespace railhead
