// The state of a kernel that FakeKernel pretends to be, and what the kernel does
// with it: links and their moves, VF settings, addresses, routes, rules, RDMA
// devices. Functions answer 0 or an errno, as the kernel does.
//
// Source of the rules: net/core/dev.c (__dev_change_net_namespace, dev_change_name,
// default_device_exit_net), net/core/rtnetlink.c (do_setlink, do_setvfinfo),
// net/ipv4/fib_frontend.c, drivers/infiniband/core (device.c, nldev.c).
// Internal to tests/fake: tests use FakeKernel. Threads: not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/unique_fd.h"
#include "netns/nl/link.h"
#include "netns/nl/rdma.h"
#include "netns/nl/route.h"
#include "tests/fake/fake_gids.h"

namespace railhead::testing {

inline constexpr const char* kHost = "host";  // name of the node's own namespace

struct FakeNamespace {
  std::string name;
  UniqueFd fd;
  unsigned long long inode = 0;
  int next_index = 2;  // 1 is lo
  std::vector<Route> routes;
  std::vector<Rule> rules;
  std::vector<Neighbour> neighbours;
};

struct FakeNetdev {
  int id = 0;  // never reused, whatever happens to names and indices
  Link link;   // carrier is computed: FakeState::LinkOf
  std::string ns;
  std::string bdf;  // PCI function; empty: virtual
  int peer = 0;     // id of a veth's other end
  bool wire = true;
  int max_mtu = 9978;
  std::vector<IpPrefix> addresses;
  std::map<Ipv4Conf, int> ipv4;
};

// What the PF's driver can do, beyond what every driver can.
struct FakeDriver {
  std::string name = "mlx5_core";
  bool min_tx_rate = true;
  bool link_state = true;
  bool s_vlan = true;  // 802.1ad
  // The VF's driver reads the MAC set by the PF only when it binds, and refuses
  // another one then (igbvf).
  bool mac_at_bind = false;
  // Host name of a netdev that appears by binding: "" is the one it had.
  std::string bind_name;
};

struct FakeFunction {
  std::string bdf;
  std::string pf;  // empty: this is one
  int vf = -1;
  FakeDriver driver;
  std::string netdev_name;       // when first bound
  std::string rdma_name;         // "": no RDMA
  std::vector<GidType> roce;     // RoCE types of its ports
  MacAddress burnt_in;           // for a PF; VFs get random ones
  std::optional<VfState> state;  // of a VF, as its PF says
  bool was_bound = false;
};

struct FakeRdma {
  std::uint32_t index = 0;
  std::string name;
  std::string ns;  // of use in exclusive mode
  int netdev = 0;  // FakeNetdev::id
  bool rxe = false;
  bool port_down = false;  // whatever the netdev does
  int uverbs = 0;
  FakeGidTable gids;
};

class FakeState {
 public:
  FakeNamespace* Namespace(const std::string& name);
  FakeNetdev* Netdev(int id);
  FakeNetdev* Find(const std::string& ns, int index);
  FakeNetdev* Find(const std::string& ns, const std::string& name);
  FakeNetdev* OfFunction(const std::string& bdf);
  FakeFunction* Function(const std::string& bdf);
  FakeFunction* Vf(const std::string& pf, int vf);
  FakeRdma* Rdma(const std::string& name);

  // The link as rtnetlink shows it.
  Link LinkOf(const FakeNetdev& netdev);
  bool HasCarrier(const FakeNetdev& netdev);
  bool PortActive(const FakeRdma& rdma);
  // netdev and RDMA device of a function whose driver binds.
  void Bind(FakeFunction& function);
  void Unbind(FakeFunction& function);
  FakeNetdev& AddNetdev(const std::string& ns, const std::string& name);
  // With all that hangs on it.
  void RemoveNetdev(int id);
  void RemoveNamespace(const std::string& name);

  int Change(FakeNetdev& netdev, const LinkChange& change);
  int Move(FakeNetdev& netdev, const std::string& target, const std::string& name, std::optional<int> mtu);
  int SetVf(const FakeFunction& pf, int vf, const VfChange& change);

  int AddAddress(FakeNetdev& netdev, const IpPrefix& address);
  int DeleteAddress(FakeNetdev& netdev, const IpPrefix& address);
  int AddRoute(const std::string& ns, Route route);
  int DeleteRoute(const std::string& ns, const Route& route);

  int MoveRdma(FakeRdma& rdma, const std::string& target);
  int AddRxe(const std::string& ns, const std::string& name, const std::string& netdev);
  [[nodiscard]] bool RdmaVisible(const FakeRdma& rdma, const std::string& ns) const;

  std::vector<FakeNamespace> namespaces;
  std::vector<FakeNetdev> netdevs;
  std::vector<FakeFunction> functions;
  std::vector<FakeRdma> rdmas;
  RdmaNetnsMode mode = RdmaNetnsMode::kShared;
  bool has_rxe = true;
  AddrGenMode default_addr_gen_mode = AddrGenMode::kEui64;
  int gid_delay = 0;  // reads until a new GID is seen

 private:
  void Enter(FakeNetdev& netdev, const std::string& ns);
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

}  // namespace railhead::testing
