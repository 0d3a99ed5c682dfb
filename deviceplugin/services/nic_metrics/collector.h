// Collects on request the counters of the node's NICs: the PFs of all pools, and the NICs of pods.
//
// It sends one message per PF (with its VFs), one per NIC in a pod, and two per RDMA device in use. Between
// two calls it keeps only sockets in the host's namespace. It skips a pod that ends during the collection.
// Some drivers ask their firmware for each VF, and answer as slowly as it does. A driver that hangs holds up
// the caller. So call it where no other work waits.
// Ownership: borrows the kernel. Threads: one call at a time. Errors: never as a whole; each failure is among
// `problems`.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "cni/state/journal_cache.h"
#include "deviceplugin/node/snapshot/advertisement.h"
#include "deviceplugin/services/nic_metrics/counter_source.h"
#include "deviceplugin/services/nic_metrics/nic_sample.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/ns/netns.h"

namespace railhead::nic_metrics {

struct NicReport {
  std::vector<NicSample> nics;  // by device
  std::vector<Error> problems;
};

class NicCollector {
 public:
  // `open` may be null: then nothing is counted.
  NicCollector(Root root, Kernel& kernel, OpenCounterSource open)
      : root_(root), kernel_(kernel), open_(std::move(open)), journal_(std::move(root)) {}

  // The PFs of all pools, and the devices of pods.
  NicReport Collect(const Advertisement& advertisement);

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
  std::optional<NetNs> host_ns_;  // these two are set when they are first needed
  std::unique_ptr<CounterSource> host_;
  JournalCache journal_;
};

}  // namespace railhead::nic_metrics
