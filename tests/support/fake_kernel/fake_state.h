// The state of FakeKernel, and the kernel's operations on it. It covers links and their moves, VF settings,
// addresses, routes, rules, neighbours, sysctls and RDMA devices. Functions return 0 or an errno, as the
// kernel does.
//
// Source of the rules: net/core/dev.c (__dev_change_net_namespace, dev_change_name,
// default_device_exit_net), net/core/rtnetlink.c (do_setlink, do_setvfinfo),
// net/ipv4/fib_frontend.c, net/ipv4/devinet.c (inetdev_init), drivers/infiniband/core (device.c, nldev.c).
// Internal to tests/fake: tests use FakeKernel. Threads: not thread-safe.
// Settings of devices: fake_devices.cc.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/unique_fd.h"
#include "netns/gid/gid_table.h"
#include "netns/nl/device_state.h"
#include "netns/nl/link.h"
#include "netns/nl/rdma.h"
#include "netns/nl/route.h"
#include "netns/nl/vf_settings.h"

namespace railhead::testing {

inline constexpr const char* kHost = "host";  // name of the node's own namespace

// fe80:: with the MAC's EUI-64.
IpAddress LinkLocalOf(const MacAddress& mac);

// The GID table of one RoCE port, by the kernel's rules.
//
// Source: drivers/infiniband/core/cache.c and roce_gid_mgmt.c. The first K slots are reserved for the default
// GIDs, where K is the number of the port's RoCE types. The GIDs of addresses take the lowest free slots
// above them, RoCE v1 before v2. A GID that already exists is not added again. Removing a GID makes a hole.
class FakeGidTable {
 public:
  struct Slot {
    IpAddress gid;
    GidType type = GidType::kRoceV2;
    int netdev = 0;        // FakeNetdev::id
    int hidden_reads = 0;  // reads until the kernel's workqueue would have added it
  };

  explicit FakeGidTable(std::vector<GidType> types) : types_(std::move(types)), slots_(kSize) {}

  void AddDefaults(int netdev, const MacAddress& mac);
  void Add(int netdev, const IpAddress& address, int hidden_reads);
  // Removes the entries of the address, but not the default GIDs.
  void Remove(int netdev, const IpAddress& address);
  void Clear() { slots_.assign(kSize, std::nullopt); }

  [[nodiscard]] const std::vector<std::optional<Slot>>& slots() const { return slots_; }
  // Counts one read of the table: each hidden entry becomes visible one read sooner.
  void CountRead();

 private:
  static constexpr std::size_t kSize = 32;
  [[nodiscard]] bool Has(int netdev, const IpAddress& gid, GidType type) const;

  std::vector<GidType> types_;
  std::vector<std::optional<Slot>> slots_;
};

// What udev of a namespace hears of a link that arrives there or is renamed there: "add net1", "move eth0".
struct FakeUevent {
  int netdev = 0;  // FakeNetdev::id
  std::string text;
};

struct FakeNamespace {
  std::string name;
  UniqueFd fd;
  unsigned long long inode = 0;
  int next_index = 2;  // 1 is lo
  std::vector<Route> routes;
  std::vector<Rule> rules;
  std::vector<Neighbour> neighbours;
  std::map<std::string, std::string> sysctls;  // by path; only changed ones, and none of interfaces
  bool has_processes = false;
  std::vector<FakeUevent> uevents;
};

struct FakeNetdev {
  int id = 0;  // never reused, whatever happens to names and indices
  Link link;   // carrier is computed: FakeState::LinkOf
  std::string ns;
  std::string bdf;  // PCI function; empty: virtual
  int peer = 0;     // id of a veth's other end
  int lower = 0;    // id of a VLAN's lower device; the VLAN stays when that device moves
  bool wire = true;
  int max_mtu = 9978;
  std::vector<IpPrefix> addresses;
  // Of addresses that are not permanent ones. `link` and `prefix` are unused.
  std::map<IpPrefix, LinkAddress> address_flags;
  // Its changed sysctls: those that netlink can also set, and the others by path ("ipv4/conf/accept_local").
  std::map<Ipv4Conf, int> ipv4;
  std::map<std::string, std::string> sysctls;
  // Its settings, as far as the driver has them. Only a link's owner can detach the programs in
  // `linked_programs`.
  DeviceState device;
  std::set<std::string> linked_programs;
};

// A host on the network that has no netdev here.
struct FakeHost {
  std::string pf;                    // BDF of the PF whose network it is in; "": in all
  std::optional<IpAddress> address;  // nullopt: it answers for every address
  MacAddress mac;
};

// What the PF's driver can do in addition to what every driver can.
struct FakeDriver {
  std::string name = "mlx5_core";
  bool min_tx_rate = true;
  bool link_state = true;
  bool s_vlan = true;  // 802.1ad
  // The VF's driver reads the MAC set by the PF only when it binds. From then on it refuses any other MAC
  // (igbvf).
  bool mac_at_bind = false;
  // Host name of a netdev that appears by binding; "": its earlier name.
  std::string bind_name;
  // The settings of a newly bound device (AllSettings(): all possible settings).
  DeviceState settings;
};

struct FakeFunction {
  std::string bdf;
  std::string pf;  // empty: this is one
  int vf = -1;
  FakeDriver driver;
  std::string netdev_name;          // when first bound
  std::string rdma_name;            // "": no RDMA
  std::vector<GidType> roce;        // RoCE types of its ports
  MacAddress burnt_in;              // for a PF; VFs get random ones
  int resets = 0;                   // function-level ones
  std::optional<VfSettings> state;  // of a VF, as its PF says
  bool was_bound = false;
};

struct FakeRdma {
  std::uint32_t index = 0;
  std::string name;
  std::string ns;  // used in exclusive mode
  int netdev = 0;  // FakeNetdev::id
  bool rxe = false;
  bool port_down = false;  // whatever the netdev does
  int uverbs = 0;
  FakeGidTable gids;
  std::vector<RdmaUser> users = {};  // the users that unbinding the driver disassociates
};

// Linux major and minor.
using FakeRelease = std::pair<int, int>;
inline constexpr FakeRelease kAltNames{5, 5};  // RTM_NEWLINKPROP

class FakeState {
 public:
  FakeNamespace* Namespace(const std::string& name);
  FakeNetdev* Netdev(int id);
  FakeNetdev* Find(const std::string& ns, int index);
  // Also finds links by alternative names.
  FakeNetdev* Find(const std::string& ns, const std::string& name);
  FakeNetdev* OfFunction(const std::string& bdf);
  FakeFunction* Function(const std::string& bdf);
  FakeFunction* Vf(const std::string& pf, int vf);
  FakeRdma* Rdma(const std::string& name);

  // The link as rtnetlink shows it.
  Link LinkOf(const FakeNetdev& netdev);
  bool HasCarrier(const FakeNetdev& netdev);
  bool PortActive(const FakeRdma& rdma);
  // Makes the netdev and RDMA device of a function whose driver binds.
  void Bind(FakeFunction& function);
  void Unbind(FakeFunction& function);
  // Takes from the netdev what its kernel does not say.
  void ForgetNewer(FakeNetdev& netdev) const;
  FakeNetdev& AddNetdev(const std::string& ns, const std::string& name);
  // Also removes everything that depends on it.
  void RemoveNetdev(int id);
  void RemoveNamespace(const std::string& name);

  int Change(FakeNetdev& netdev, const LinkChange& change);
  int Move(FakeNetdev& netdev, const std::string& target, const std::string& name, std::optional<int> mtu);
  int AddAltName(FakeNetdev& netdev, const std::string& name);
  int DeleteAltName(FakeNetdev& netdev, const std::string& name);
  int SetVf(const FakeFunction& pf, int vf, const VfSettings& change);

  int WriteDevice(FakeNetdev& netdev, DeviceSource source, const DeviceState& values);

  int AddAddress(FakeNetdev& netdev, const IpPrefix& address);
  int DeleteAddress(FakeNetdev& netdev, const IpPrefix& address);
  int AddRoute(const std::string& ns, Route route);
  int DeleteRoute(const std::string& ns, const Route& route);

  // The MAC that answers for an address on the netdev's network. It belongs to a foreign host, or to a netdev
  // on the same wire that has the address and may answer. The same wire is a veth peer, or the same PF and
  // VLAN.
  std::optional<MacAddress> AnswerFor(const FakeNetdev& netdev, const IpAddress& address);
  void Resolve(const FakeNetdev& netdev, const IpAddress& address);

  // Paths as for Kernel::ReadSysctls.
  std::optional<std::string> ReadSysctl(const std::string& ns, const std::string& path);
  int WriteSysctl(const std::string& ns, const std::string& path, const std::string& value);
  // The sysctls that differ from a new namespace's or a new link's, as "path=value".
  [[nodiscard]] std::vector<std::string> ChangedSysctls();

  int MoveRdma(FakeRdma& rdma, const std::string& target);
  int AddRxe(const std::string& ns, const std::string& name, const std::string& netdev);
  [[nodiscard]] bool RdmaVisible(const FakeRdma& rdma, const std::string& ns) const;

  std::vector<FakeNamespace> namespaces;
  std::vector<FakeNetdev> netdevs;
  std::vector<FakeFunction> functions;
  std::vector<FakeRdma> rdmas;
  std::vector<FakeHost> hosts;
  RdmaNetnsMode mode = RdmaNetnsMode::kShared;
  bool has_rxe = true;
  AddrGenMode default_addr_gen_mode = AddrGenMode::kEui64;
  int gid_delay = 0;  // reads until a new GID is seen
  // It refuses, or does not say, what came later (FakeKernel::SetRelease).
  FakeRelease release{7, 3};
  // BPF programs that a process holds, by number. Other programs cannot be attached again.
  std::set<std::string> programs;

 private:
  // Sets them to the namespace's "default", or to the kernel's where that is not set.
  void ResetSysctls(FakeNetdev& netdev);
  void SetLinkSysctl(FakeNetdev& netdev, const std::string& key, const std::string& value);
  bool OnOneWire(const FakeNetdev& one, const FakeNetdev& other);
  bool HasIpv6(const FakeNetdev& netdev);
  void Enter(FakeNetdev& netdev, const std::string& ns, const std::string& name);
  void GoUp(FakeNetdev& netdev);
  void GoDown(FakeNetdev& netdev);
  int Rename(FakeNetdev& netdev, const std::string& name);
  void DropAddress(FakeNetdev& netdev, const IpPrefix& address);
  void AddConnectedRoute(FakeNetdev& netdev, const IpPrefix& address);
  void RefillGids(FakeNetdev& netdev);
  void ReturnToHost(FakeNetdev& netdev);
  [[nodiscard]] int LowestUverbs() const;
  template <typename F>
  void ForEachRdmaOn(int netdev, F&& f) {
    for (auto& rdma : rdmas) {
      if (rdma.netdev == netdev) f(rdma);
    }
  }

  int next_id_ = 1;
  std::uint32_t next_rdma_index_ = 0;
  std::uint8_t next_random_ = 1;
};

// The first release that has this field of DeviceFields(); 0.0: all that matter here.
FakeRelease ReleaseOf(std::string_view field);

// A value for every field of DeviceFields(), as of a device with four queues to which nothing is attached.
DeviceState AllSettings();

}  // namespace railhead::testing
