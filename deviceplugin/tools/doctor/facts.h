// The facts about this node that the checks judge. ReadFacts collects them once.
//
// A fact that could not be read states the reason. No check guesses it.
// Threads: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/fabric/node_index.h"
#include "cni/state/conflict_log.h"
#include "cni/state/journal.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "netns/base/result.h"
#include "netns/gid/gid_table.h"
#include "netns/nl/dcb.h"
#include "netns/nl/link.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::doctor {

template <typename T>
class Fact {
 public:
  Fact() = default;
  Fact(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): a fact is its value
  static Fact Unknown(const std::string& why) {
    Fact fact;
    fact.why_ = why;
    return fact;
  }
  static Fact Of(Result<T> result) {
    if (!result) return Unknown(Describe(result.error()));
    return Fact(*std::move(result));
  }
  // `absent`: the reason when the value does not exist.
  static Fact Of(Result<std::optional<T>> result, const std::string& absent) {
    if (!result) return Unknown(Describe(result.error()));
    if (!*result) return Unknown(absent);
    return Fact(**std::move(result));
  }

  explicit operator bool() const { return value_.has_value(); }
  [[nodiscard]] const T& operator*() const { return *value_; }
  [[nodiscard]] const T* operator->() const { return &*value_; }
  [[nodiscard]] const std::string& why() const { return why_; }  // why the fact is unknown

 private:
  std::optional<T> value_;
  std::string why_ = "was not read";
};

// The beginning of the GID table of an RDMA device's port 1.
struct GidFacts {
  std::string device;
  Fact<std::vector<GidEntry>> gids;
};

// IEEE 802.1Qau marking as OFED shows it, by priority: the reaction points (rp) and notification points (np).
struct EcnState {
  std::vector<bool> reacts;
  std::vector<bool> notifies;
};

// net.ipv4.conf: the larger value of "all" and the interface's own, as in the kernel.
struct ArpSettings {
  int rp_filter = 0;
  int arp_ignore = 0;
  int arp_announce = 0;
};

// A PF that carries a rail of the fabric; without fabric.json, one that could.
struct PfFacts {
  PciAddress address;
  std::string rail;    // "": without a fabric
  std::string netdev;  // "": not in this namespace
  std::string rdma;    // "": none here
  std::string driver;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  int total_vfs = 0;
  std::vector<PciAddress> vfs;  // in the order of their index
  Fact<int> mtu;
  Fact<std::string> driver_version;
  Fact<std::string> firmware;
  Fact<PortState> port;
  Fact<ArpSettings> arp;
  Fact<std::uint16_t> sriov_control;
  Fact<std::string> iommu;     // type of its group; "off": it is in none
  std::vector<GidFacts> gids;  // its own, and those of the first VF that is on the host
  Fact<DcbState> dcb;
  Fact<EcnState> ecn;
  Fact<std::map<int, VfSettings>> vf_settings;

  // "pf0 (0000:43:00.0)"
  [[nodiscard]] std::string Name() const;
};

struct AcceleratorFacts {
  PciAddress address;
  std::uint16_t vendor = 0;
  std::string driver;
  Fact<std::string> iommu;
};

// A bridge between an accelerator and a PF that share a switch.
struct BridgeFacts {
  PciAddress address;
  // ACS Control Register; nullopt within: the bridge has no ACS.
  Fact<std::optional<std::uint16_t>> acs;
  // One of the pairs that it is between.
  PciAddress pf;
  PciAddress accelerator;
};

struct ProcessFacts {
  int pid = 0;
  std::string name;           // "containerd"
  Fact<std::string> memlock;  // soft limit: "unlimited" or bytes
};

// The settings that decide whether a container runtime reads CDI specs.
struct CdiSwitch {
  enum class Runtime : std::uint8_t { kContainerd, kCrio };
  Runtime runtime = Runtime::kContainerd;
  std::string path;                                     // "": without a configuration, so defaults count
  int version = 0;                                      // of containerd's configuration; 0: not stated
  std::optional<bool> enabled;                          // enable_cdi
  std::optional<std::vector<std::string>> directories;  // cdi_spec_dirs
};

// A plugin in a CNI configuration.
struct CniUse {
  std::string file;
  std::string type;
  std::vector<std::string> devices;     // the names and addresses of devices in it
  std::vector<IpPrefix> networks = {};  // of pods or services
  std::vector<IpPrefix> routes = {};    // that the pod's interface gets, without a default one
};

// A network device that a pool may give out, and the managers of the host that configure it.
struct ManagedDevice {
  PciAddress address;
  std::string netdev;
  std::vector<std::string> managers;  // "NetworkManager"; empty: none does
};

struct GpuDriverFacts {
  bool nvidia = false;   // the module is loaded
  bool peermem = false;  // nvidia_peermem is loaded
  Fact<bool> open;       // the open kernel modules, which can do dma-buf
  Fact<bool> nvml;       // the running railheadd has railhead-nvml
};

struct KubeletFacts {
  std::string root_dir;     // --root-dir
  Fact<bool> has_our_pods;  // its `pods` is the directory that railheadd looks into
};

// Railhead's own records of this node.
struct RecordFacts {
  std::vector<UnreadableEntry> unreadable;       // of the journal
  std::map<std::string, std::string> displaced;  // by device: its own name, which another interface has
  std::vector<std::string> altered_specs;  // file names of CDI specs that differ from what Railhead wrote
  std::optional<Error> drains_error;       // why the list of drained devices cannot be read
  std::optional<Error> store_error;        // why the address store cannot be read
  std::vector<ConflictSource> conflict_sources;  // of the last hour
  std::set<std::string> tenants;                 // Kubernetes namespaces of pods that have devices
  std::map<std::string, std::string> pods;       // that have devices, by their UID: "namespace/name"
};

using LinuxRelease = std::pair<int, int>;  // major and minor number

struct NodeFacts {
  std::string node;
  std::string kernel;  // release of Linux, "5.10.0-32-amd64"; "": unknown
  Fact<Fabric> fabric;
  bool sriovdp_config = false;                         // there is a config.json instead
  std::optional<Error> fabric_error;                   // the file exists, but is invalid
  Fact<std::vector<NodeIndexProblem>> index_problems;  // of the claimed index; none where none is claimed
  std::vector<PfFacts> pfs;                            // in PCI order
  std::string pfs_unknown;                             // why the PFs are unknown; "": they were read
  Fact<std::vector<AcceleratorFacts>> accelerators;
  Fact<std::vector<BridgeFacts>> bridges;
  Fact<bool> rdma_exclusive;
  Fact<int> other_namespaces;  // network namespaces besides the host's
  Fact<std::vector<std::string>> rdma_order;
  std::map<std::string, PciAddress> rdma_functions;  // RDMA devices on PCI, by name
  std::map<std::string, std::string> node_guids;     // of these devices: "506b:4b03:00c2:8dc6"
  Fact<std::vector<ProcessFacts>> runtimes;          // container runtimes
  Fact<CdiSwitch> cdi;
  Fact<std::vector<std::string>> plugin_sockets;  // of other device plugins
  Fact<std::vector<CniUse>> cni;
  Fact<std::vector<ManagedDevice>> managed;  // VFs on the host, and PFs without VFs
  Fact<bool> selinux;
  // SELinux' labels of the files that containers mount and cannot read, by path.
  Fact<std::map<std::string, std::string>> unreadable_mounts;
  Fact<lldp::LldpReport> lldp_report;
  Fact<std::vector<Error>> open_files;  // why files that root trusts, or their folders, are refused
  Fact<RecordFacts> records;
  // Pods that have devices and hold CAP_NET_ADMIN in the host's user namespace: "namespace/name".
  Fact<std::set<std::string>> net_admins;
  Fact<KubeletFacts> kubelet;
  // Directories in which namespaces that the host makes later are not visible.
  Fact<std::vector<std::string>> hidden_netns;
  Fact<bool> probes_signed;  // railheadd counts only signed probes
  GpuDriverFacts gpu;
  bool verbs = false;    // ib_uverbs is loaded
  bool rdma_cm = false;  // rdma_ucm is loaded
  bool rxe = false;      // rdma_rxe is loaded

  // nullopt: unknown.
  [[nodiscard]] std::optional<LinuxRelease> Release() const;
  // Why the node has no PF to check.
  [[nodiscard]] std::string WhyNoPf() const;
  // The rail of a PF; nullptr without one.
  [[nodiscard]] const Rail* RailOf(const PfFacts& pf) const;
};

}  // namespace railhead::doctor
