// The facts about this node that the checks judge. ReadFacts collects them once.
//
// A fact that could not be read states the reason. No check guesses it.
// Threads: plain values.
#pragma once

#include <cstdint>
#include <functional>
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
#include "netns/base/root.h"
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

// Reads the facts for the checks, once, and quickly: of VFs it reads only which exist.
//
// Facts come from files below `root`. KernelQuestions asks the kernel's sockets for those that no file has. A
// Fact that cannot be read states the reason.
// Threads: one. Errors: none; they are in the facts.

struct KernelQuestions {
  std::function<Result<std::optional<DcbState>>(const std::string& netdev)> dcb;
  std::function<Result<std::vector<std::string>>()> rdma_order;
  std::function<Result<std::map<int, VfSettings>>(const std::string& pf)> vfs;
  // devlink's versions of a PCI function
  std::function<Result<std::map<std::string, std::string>>(const std::string& address)> versions;
};

// The questions to this machine, in the calling thread's network namespace. Below a test root it asks
// nothing: the devices there are not this machine's.
KernelQuestions QuestionsFor(const Root& root);

NodeFacts ReadFacts(const Root& root, const KernelQuestions& kernel);

// The steps of ReadFacts().
void ReadPfs(const Root& root, const KernelQuestions& kernel, NodeFacts* facts);
void ReadPci(const Root& root, NodeFacts* facts);
void ReadRdma(const Root& root, const KernelQuestions& kernel, NodeFacts* facts);
void ReadProcesses(const Root& root, NodeFacts* facts);
// Among `pods`, as in RecordFacts.
Fact<std::set<std::string>> ReadNetAdmins(const Root& root, const std::map<std::string, std::string>& pods);
void ReadGpuDriver(const Root& root, NodeFacts* facts);
void ReadRuntime(const Root& root, NodeFacts* facts);
Fact<std::vector<CniUse>> ReadCni(const Root& root);
// One error for each file or folder to correct.
Fact<std::vector<Error>> ReadOpenFiles(const Root& root);
// Of the devices of `pfs`.
Fact<std::vector<ManagedDevice>> ReadManaged(const Root& root, const std::vector<PfFacts>& pfs);
Fact<KubeletFacts> ReadKubelet(const Root& root);
void ReadSelinux(const Root& root, NodeFacts* facts);
// Reads the CDI settings of containerd and CRI-O (containerd's docs/cri/config.md, crio.conf(5)). `running`:
// names of the container runtimes that were seen among the processes.
Fact<CdiSwitch> ReadCdiSwitch(const Root& root, const std::vector<std::string>& running);
Fact<std::vector<std::string>> ReadHiddenDirectories(const Root& root);

// The rails' routes that take the traffic of a network of the cluster: the pod's cluster interface has only
// its default route there, which is less specific. `cluster`: the node's CNI configurations. Each error has a
// JSON pointer.
std::vector<Error> RoutesOverCluster(const Fabric& fabric, const std::vector<CniUse>& cluster);

// The bridges between two functions, without those that they share. Paths are as in PciDevice::path.
std::vector<PciAddress> BridgesBetween(const std::string& a, const std::string& b);

// The IOMMU's setting for a function: the type of its group, or "off".
Fact<std::string> IommuOf(const Root& root, const PciAddress& address);

}  // namespace railhead::doctor
