// Collects on request the counters of the node's NICs: the PFs of all pools, and the NICs of pods.
//
// It sends one message per PF (with its VFs), one per NIC in a pod, and two per RDMA device in use. Between
// two calls it keeps only sockets in the host's namespace. It skips a pod that ends during the collection.
// Some drivers ask their firmware for each VF, and answer as slowly as it does. A driver that hangs holds up
// the caller. So call it where no other work waits.
// Ownership: borrows the kernel. Threads: one call at a time. Errors: never as a whole; each failure is among
// `problems`.
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
#include "deviceplugin/node/snapshot/advertisement.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/nl/counters.h"
#include "netns/ns/netns.h"

namespace railhead::nic_metrics {

// Where a NIC's counters come from: one network namespace, as the kernel has it.
//
// Ownership: owns its sockets, which keep the namespace alive. Keep a pod's source for one collection only:
// otherwise its NICs are not restored when the pod ends. Threads: one at a time. Errors: a missing counter is
// nullopt or empty.

class CounterSource {
 public:
  CounterSource() = default;
  CounterSource(const CounterSource&) = delete;
  CounterSource& operator=(const CounterSource&) = delete;
  virtual ~CounterSource() = default;

  virtual Result<std::optional<PfTraffic>> Link(const std::string& netdev) = 0;
  virtual Result<std::optional<NamedCounters>> Rdma(std::uint32_t device_index) = 0;
  // The counters among `names` that `ethtool -S` shows.
  virtual Result<std::map<std::string, std::uint64_t>> Driver(const std::string& netdev,
                                                              const std::vector<std::string>& names) = 0;
};

using OpenCounterSource = std::function<Result<std::unique_ptr<CounterSource>>(const NetNs&)>;

// The running kernel's. Sockets are opened when they are needed.
Result<std::unique_ptr<CounterSource>> OpenKernelCounters(const NetNs& ns);

// Pause frames and per-priority counters of a port, from the drivers' own names.
//
// Drivers have no common names: ethtool's standard groups have pause frames, but not by priority. Hardly any
// driver of RoCE NICs has more. The known drivers are mlx5_core, bnxt_en, ice, i40e, ixgbe and igb. Other
// drivers get no such counters.
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

// The counters to ask a driver for. Empty: the driver is unknown.
const std::vector<std::string>& PriorityCounterNames(const std::string& driver);
// Takes the counters that the driver returned. It omits those that the driver lacks.
std::vector<PriorityCount> PriorityCountsOf(const std::string& driver,
                                            const std::map<std::string, std::uint64_t>& statistics);

// The counters of one NIC, and its owner: a PF of a pool, or a PF or VF in a pod.
// Threads: values.

struct NicOwner {
  AttachmentKey attachment;
  std::string pod;  // "": the runtime did not name it
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

  // From its own network device. nullopt: it has none (a user-space driver), or it has just gone.
  std::optional<Traffic> traffic;
  bool carrier = false;
  std::uint64_t carrier_changes = 0;
  // Of a VF, as its PF's driver counts: with RDMA, where the driver sees it (mlx5). nullopt: the driver does
  // not count.
  std::optional<Traffic> by_pf;
  // Of PFs that are here.
  std::optional<std::uint64_t> speed;  // bytes per second; nullopt: no link
  std::vector<PriorityCount> priorities;

  std::string rdma_device;  // "": none
  bool rdma_seen = false;   // the kernel reports the device, so the two below are valid
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

// The NICs that the page covers, and their owners, without counters.
// Threads: reads files below the root only; thread-safe.

// By device: the PFs of all pools, and the devices of `attachments`.
std::map<std::string, NicSample> NicSubjects(const Root& root, const Advertisement& advertisement,
                                             const JournalCache::Entries& attachments);

}  // namespace railhead::nic_metrics
