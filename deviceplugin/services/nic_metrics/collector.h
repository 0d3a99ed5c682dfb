// Collects what the node's NICs have counted, when it is asked for: the PFs of all pools, and what pods have.
//
// One message per PF (with its VFs), one per NIC in a pod, two per RDMA device that is used; nothing is kept
// between two calls but sockets in the host's namespace. A pod that ends meanwhile is left out. A driver that
// asks its firmware for each VF answers as slowly as that does, and one that hangs holds the caller for as
// long: call it where nobody waits. Ownership: borrows the kernel. Threads: one call at a time. Errors: never
// as a whole; what could not be read is among `problems`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "cni/state/journal_cache.h"
#include "deviceplugin/services/kubelet/advertisement.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/nl/counters.h"
#include "netns/ns/netns.h"

namespace railhead::nic_metrics {

// Where a NIC's counters come from: one network namespace, as the kernel has it.
//
// Ownership: owns its sockets, which hold the namespace; keep that of a pod for one collection only, or its
// NICs are not restored when it ends. Threads: one at a time. Errors: what is not there is nullopt or empty.

class CounterSource {
 public:
  CounterSource() = default;
  CounterSource(const CounterSource&) = delete;
  CounterSource& operator=(const CounterSource&) = delete;
  virtual ~CounterSource() = default;

  virtual Result<std::optional<PfTraffic>> Link(const std::string& netdev) = 0;
  virtual Result<std::optional<NamedCounters>> Rdma(std::uint32_t device_index) = 0;
  // As `ethtool -S` shows them; those of `names` that there are.
  virtual Result<std::map<std::string, std::uint64_t>> Driver(const std::string& netdev,
                                                              const std::vector<std::string>& names) = 0;
};

using OpenCounterSource = std::function<Result<std::unique_ptr<CounterSource>>(const NetNs&)>;

// The running kernel's. Sockets are opened when they are needed.
Result<std::unique_ptr<CounterSource>> OpenKernelCounters(const NetNs& ns);

// Pause frames and per-priority counters of a port, out of what drivers call them.
//
// There is no name that all drivers use (ethtool's standard groups have pause frames, not by
// priority, and hardly any driver of RoCE NICs has more). What is known: mlx5_core, bnxt_en, ice, i40e,
// ixgbe, igb. Of another driver nothing is told.
// Source: drivers/net/ethernet/{mellanox/mlx5/core/en_stats.c, broadcom/bnxt/bnxt_ethtool.c,
// intel/ice/ice_ethtool.c, intel/i40e/i40e_ethtool.c, intel/ixgbe/ixgbe_ethtool.c, intel/igb/igb_ethtool.c}.
// Threads: pure functions.

enum class PriorityCounter : std::uint8_t {
  kPauseFrames,        // XOFF
  kPauseMicroseconds,  // for how long the sender of the direction was stopped
  kBytes,
  kDiscards,
};

struct PriorityCount {
  PriorityCounter counter = PriorityCounter::kPauseFrames;
  bool transmit = false;
  std::optional<int> priority;  // nullopt: of the port as a whole
  std::uint64_t value = 0;

  bool operator==(const PriorityCount&) const = default;
};

// What to ask a driver for; empty: it is not known.
const std::vector<std::string>& PriorityCounterNames(const std::string& driver);
// Of what it answered; what it does not have is left out.
std::vector<PriorityCount> PriorityCountsOf(const std::string& driver,
                                            const std::map<std::string, std::uint64_t>& statistics);

// What one NIC has counted, and whose it is: a PF of a pool, or a PF or VF in a pod.
// Threads: values.

struct NicOwner {
  AttachmentKey attachment;
  std::string pod;  // "": the runtime did not say
  std::string pod_namespace;
  std::string interface;     // in the pod
  bool nccl_config = false;  // it is in nccl.conf
};

struct NicSample {
  std::string device;  // PCI address, or the name on the auxiliary bus
  std::string pf;      // its PF's network device, or its own; "" unknown
  std::optional<int> vf;
  std::string rail;  // "": of no rail that the fabric names
  std::optional<int> numa_node;
  std::string driver;
  std::optional<NicOwner> owner;  // nullopt: in no pod

  // Its own network device's; nullopt: there is none (a user-space driver), or it is gone meanwhile.
  std::optional<Traffic> traffic;
  bool carrier = false;
  std::uint64_t carrier_changes = 0;
  // Of a VF, as its PF's driver counts: with RDMA, where the driver sees it (mlx5). nullopt: it does not
  // count.
  std::optional<Traffic> by_pf;
  // Of PFs that are here.
  std::optional<std::uint64_t> speed;  // bytes per second; nullopt: no link
  std::vector<PriorityCount> priorities;

  std::string rdma_device;  // "": none
  bool rdma_seen = false;   // the kernel tells of it; the two below say something
  bool rdma_active = false;
  NamedCounters rdma;
};

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
  NicReport Collect(const kubelet::Advertisement& advertisement);

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

// Which NICs are told of, and whose they are: before anything is counted.
// Threads: reads files below the root only; thread-safe.

// By device: the PFs of all pools, and the devices of `attachments`.
std::map<std::string, NicSample> NicSubjects(const Root& root, const kubelet::Advertisement& advertisement,
                                             const JournalCache::Entries& attachments);

}  // namespace railhead::nic_metrics
