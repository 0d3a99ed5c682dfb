// Pods that flood a node's probe responder, on the real kernel: what other senders lose, and what it costs.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/rtnetlink.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ostream>
#include <thread>

#include "cni/fabric/probe_endpoint_mac.h"
#include "deviceplugin/services/reachability/probe_message.h"
#include "deviceplugin/services/reachability/rail_prober.h"
#include "deviceplugin/services/reachability/send_probes.h"
#include "deviceplugin/services/reachability/udp_socket.h"
#include "netns/linux_kernel.h"
#include "netns/nl/message.h"
#include "tests/support/netns/stand_in.h"
#include "tests/support/netns/wires.h"
#include "tests/support/service/running.h"

namespace railhead::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Flood: a pod that sends probes as if from many addresses, at a given rate.
//
// It is a process of its own, so that its CPU time is not counted as this process's. It has raw sockets in
// the namespace `from` (CAP_NET_RAW, as pods may have), and ends with this object or with this process.
// Threads: one at a time. Errors: failures to set up end the process.
struct FloodPlan {
  reachability::UdpEnd to;    // IPv4
  IpAddress first;            // of the senders
  std::uint32_t senders = 1;  // consecutive addresses, by turns
  int per_second = 0;         // packets; 0: as many as it can
};

class Flood {
 public:
  Flood(const NetNs& from, const FloodPlan& plan);
  ~Flood();
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  [[nodiscard]] std::uint64_t Sent() const;

 private:
  struct Shared;
  Shared* shared_;
  pid_t child_;
};

constexpr std::size_t kBatch = 64;
constexpr std::uint16_t kPort = 40'000;
constexpr std::chrono::milliseconds kLongestLag{20};

struct Packet {
  iphdr ip{};
  udphdr udp{};
  std::array<std::uint8_t, reachability::kProbeHeader> probe{};
};

UniqueFd OpenRawIp(const NetNs& from) {
  UniqueFd fd;
  Must(OpenSocketsIn(from, [&]() -> Result<void> {
    fd = UniqueFd(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
    if (!fd.valid()) return FailSys(errno, "opening a raw socket");
    return {};
  }));
  return fd;
}

// The packets of one sendmmsg(2), which differ in their senders.
class Batch {
 public:
  explicit Batch(const FloodPlan& plan) : plan_(plan), to_(plan.to) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      Packet& packet = packets_[i];
      packet.ip.version = 4;
      packet.ip.ihl = sizeof packet.ip / 4;
      packet.ip.tot_len = htons(sizeof packet);
      packet.ip.ttl = 64;
      packet.ip.protocol = IPPROTO_UDP;
      std::memcpy(&packet.ip.daddr, plan.to.address.Data(), sizeof packet.ip.daddr);
      packet.udp.source = htons(kPort);
      packet.udp.dest = htons(plan.to.port);
      packet.udp.len = htons(sizeof packet.udp + sizeof packet.probe);
      const auto probe = reachability::BytesOf({});
      std::copy(probe.begin(), probe.end(), packet.probe.begin());
      parts_[i] = {&packet, sizeof packet};
      messages_[i].msg_hdr.msg_iov = &parts_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
      messages_[i].msg_hdr.msg_name = to_.data();
      messages_[i].msg_hdr.msg_namelen = to_.size;
    }
  }

  // Returns how many of kBatch were sent.
  std::uint64_t Send(int socket) {
    for (Packet& packet : packets_) {
      packet.ip.saddr = htonl(plan_.first.ToV4() + next_);
      next_ = (next_ + 1) % plan_.senders;
    }
    return static_cast<std::uint64_t>(std::max(0, sendmmsg(socket, messages_.data(), kBatch, 0)));
  }

 private:
  const FloodPlan plan_;
  reachability::UdpSocketAddress to_;
  std::uint32_t next_ = 0;
  std::array<Packet, kBatch> packets_{};
  std::array<iovec, kBatch> parts_{};
  std::array<mmsghdr, kBatch> messages_{};
};

struct Flood::Shared {
  std::atomic<std::uint64_t> sent{0};
};

Flood::Flood(const NetNs& from, const FloodPlan& plan) {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Die(SysError(errno, "sharing memory with the flood"));
  shared_ = new (memory) Shared;
  const UniqueFd socket = OpenRawIp(from);
  Batch batch(plan);
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ < 0) Die(SysError(errno, "starting the flood"));
  if (child_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  for (auto due = Clock::now();;) {
    const auto now = Clock::now();
    if (plan.per_second > 0 && now < due) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    // A flood that had no CPU does not catch up: what it missed would come as one of another size.
    due = std::max(due, now - kLongestLag);
    const std::uint64_t sent = batch.Send(socket.get());
    shared_->sent += sent;
    if (plan.per_second > 0)
      due += std::chrono::nanoseconds(std::chrono::seconds(1)) * sent / plan.per_second;
  }
}

Flood::~Flood() {
  kill(child_, SIGKILL);
  (void)waitpid(child_, nullptr, 0);
  munmap(shared_, sizeof(Shared));
}

std::uint64_t Flood::Sent() const {
  return shared_->sent;
}

constexpr int kPaths = 8;
constexpr int kPeers = 40;
constexpr std::uint32_t kPeersThatAreGone = 100;
// More than the neighbour tables of all namespaces together have by default (gc_thresh3, 1,024).
constexpr std::uint32_t kUnknownHosts = 16'000;
// More than an endpoint's limit for unknown hosts, and fewer than fill its receive buffer while it waits for
// a CPU.
constexpr int kModest = 3'000;

// The first addresses of a rail: the node's endpoint, its peers' and those of peers that are gone. Unknown
// hosts have a prefix of their own.
IpAddress AddressOf(int rail, std::uint32_t number) {
  return IpAddress::V4(0x0a640001U + (static_cast<std::uint32_t>(rail) << 16U) + number);
}
const IpPrefix kUnknownHostsPrefix = *IpPrefix::Parse("10.100.64.0/18");

struct Attack {
  const char* name;
  IpAddress first;
  std::uint32_t senders;
  bool answers_arp;
};

void PrintTo(const Attack& attack, std::ostream* out) {
  *out << attack.name;
}

// Two rails of one node, each a veth whose other end has the peers' addresses, and, on rail 0, the pod.
class FloodTest : public ::testing::Test {
 protected:
  FloodTest() {
    const auto far = OpenRoute(wires_.the_switch());
    for (int rail = 0; rail < 2; ++rail) {
      for (std::uint32_t peer = 1; peer <= kPeers; ++peer)
        Must(far->AddAddress(wires_.Far(rail), IpPrefix{AddressOf(rail, peer), 16}));
    }
  }
  void SetUp() override {
    for (int rail = 0; rail < 2; ++rail) {
      ASSERT_TRUE(OpenEndpoint(rail));
      ASSERT_EQ(Lost(rail, kPeers), 0U);
    }
  }

  static reachability::UdpEnd EndpointOf(int rail) {
    return {AddressOf(rail, 0), reachability::ReachabilitySettings().port};
  }
  std::unique_ptr<reachability::RailProber>& Prober(int rail) {
    return probers_.at(static_cast<std::size_t>(rail));
  }
  bool OpenEndpoint(int rail) {
    reachability::RailPort port;
    port.device = "0000:0" + std::to_string(rail) + ":00.0";
    port.pf = "pf" + std::to_string(rail);
    port.rail.name = "rail" + std::to_string(rail);
    port.rail.subnet = IpPrefix{AddressOf(rail, 0).Masked(16), 16};
    for (std::uint32_t node = 0; node <= kPeers + kPeersThatAreGone; ++node)
      port.rail.probe_addresses["node" + std::to_string(node)] = AddressOf(rail, node);
    port.SetNetwork("node0", {});
    Prober(rail) = std::make_unique<reachability::RailProber>(kernel_, *echo_, "node0");
    Prober(rail)->Set(port, reachability::ReachabilitySettings());
    const NetNs host = Must(kernel_.HostNetns());
    return Holds([&] {
      std::vector<reachability::Probe> probes;
      Prober(rail)->Prepare(host);
      Prober(rail)->AddProbes(random_, &probes);
      return !probes.empty();
    });
  }

  // AnyIP: the pod has all of `prefix`, and answers ARP for it.
  void GivePod(const IpPrefix& prefix) {
    nl::Message message(RTM_NEWROUTE, NLM_F_CREATE);
    rtmsg header{};
    header.rtm_family = AF_INET;
    header.rtm_dst_len = static_cast<std::uint8_t>(prefix.length);
    header.rtm_table = RT_TABLE_LOCAL;
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_scope = RT_SCOPE_HOST;
    header.rtm_type = RTN_LOCAL;
    message.Header(header);
    message.Put(RTA_DST, {prefix.address.Data(), prefix.address.Size()});
    message.PutU32(RTA_OIF, 1);
    Must(OpenRaw(wires_.the_switch()).Request(message));
  }

  // Sends a peer's burst as RailProber does. Returns how many of its probes were not answered.
  std::size_t Lost(int rail, std::uint32_t peer) {
    // Nodes know each other's endpoints by their MAC addresses.
    LinkChange peers;
    peers.mac = ProbeEndpointMac("node" + std::to_string(peer), "rail" + std::to_string(rail));
    Must(OpenRoute(wires_.the_switch())->ChangeLink(wires_.Far(rail), peers));
    std::vector<UniqueFd> sockets;
    std::vector<reachability::Probe> probes;
    for (int path = 0; path < kPaths; ++path) {
      const auto port = static_cast<std::uint16_t>(49'152 + path);
      sockets.push_back(Must(reachability::OpenUdp(wires_.the_switch(), "swp" + std::to_string(rail),
                                                   {AddressOf(rail, peer), port}, 0)));
      for (int i = 0; i < reachability::PeerTable::kPerPath; ++i) {
        reachability::Probe& probe = probes.emplace_back();
        probe.socket = sockets.back().get();
        probe.to = EndpointOf(rail);
        probe.session = peer;
      }
    }
    Must(SendProbes(&probes, std::chrono::seconds(10)));
    const auto lost = [](const reachability::Probe& probe) { return !probe.rtt; };
    return static_cast<std::size_t>(std::count_if(probes.begin(), probes.end(), lost));
  }
  // Each peer sends two bursts while the flood sends `packets`.
  void ExpectNothingLost(int rail, const Flood& flood, std::uint64_t packets) {
    for (std::uint32_t burst = 0; burst < 2 * kPeers; ++burst) {
      const std::uint64_t sent = flood.Sent() + packets / (2 * kPeers);
      ASSERT_TRUE(Holds([&] { return flood.Sent() >= sent; }));
      ASSERT_EQ(Lost(rail, 1 + burst % kPeers), 0U) << "burst " << burst << " of rail " << rail;
    }
  }

  // CPU time of this process for one packet of the flood. The flood is a process of its own.
  double MicrosecondsPerPacket(std::uint32_t senders) {
    const Flood flood(wires_.the_switch(), {EndpointOf(0), kUnknownHostsPrefix.First(), senders, 15'000});
    const auto cpu = [] {
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      return 1e6 * static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
             static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    };
    // Measures only after every sender has sent.
    EXPECT_TRUE(Holds([&] { return flood.Sent() > kUnknownHosts; }));
    const double before = cpu();
    const std::uint64_t first = flood.Sent();
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(Holds([&] { return flood.Sent() > first + kUnknownHosts; }));
    const double spent = cpu() - before;
    const auto packets = static_cast<double>(flood.Sent() - first);
    const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - began;
    std::printf("%u senders: %.2f us of a CPU for a packet, %.1f %% of it for %.0f packets/s\n", senders,
                spent / packets, 100 * spent / passed.count(), packets / passed.count() * 1e6);
    return spent / packets;
  }

  Wires wires_{2};
  LinuxKernel kernel_{Root()};
  std::mt19937_64 random_{1};
  Running<reachability::EchoServer> echo_ = RunService<reachability::EchoServer>();
  std::array<std::unique_ptr<reachability::RailProber>, 2> probers_;
};

TEST_F(FloodTest, CostsNoMoreWithManySendersThanWithOne) {
  const double one = MicrosecondsPerPacket(1);
  const double many = MicrosecondsPerPacket(kUnknownHosts);
  EXPECT_GT(one, 0);
  EXPECT_LT(many, 3 * one);
}

class FloodFromTest : public FloodTest, public ::testing::WithParamInterface<Attack> {
 protected:
  FloodFromTest() {
    if (GetParam().answers_arp) GivePod(kUnknownHostsPrefix);
  }
  std::unique_ptr<Flood> Begin(int per_second) {
    const Attack& attack = GetParam();
    auto flood = std::make_unique<Flood>(wires_.the_switch(),
                                         FloodPlan{EndpointOf(0), attack.first, attack.senders, per_second});
    // The flood exhausts everything that it can: neighbour table, send buffer, limits.
    EXPECT_TRUE(Holds([&] { return flood->Sent() > kModest; }));
    return flood;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Senders, FloodFromTest,
    ::testing::Values(Attack{"OneAddress", kUnknownHostsPrefix.First(), 1, false},
                      Attack{"ManyAddresses", kUnknownHostsPrefix.First(), kUnknownHosts, false},
                      Attack{"ManyAddressesThatAnswerArp", kUnknownHostsPrefix.First(), kUnknownHosts, true},
                      Attack{"PeersThatAreGone", AddressOf(0, kPeers + 1), kPeersThatAreGone, false}),
    [](const auto& attack) { return std::string(attack.param.name); });

TEST_P(FloodFromTest, CostsAnotherRailNothing) {
  const auto flood = Begin(0);
  ExpectNothingLost(1, *flood, 100'000);
  // A flood does not stop a rail's prober from ending either.
  Prober(0).reset();
  Prober(1).reset();
}

TEST_P(FloodFromTest, CostsPeersOfTheSameRailNothing) {
  const auto flood = Begin(kModest);
  ExpectNothingLost(0, *flood, 3 * kModest);
}

}  // namespace
}  // namespace railhead::testing
