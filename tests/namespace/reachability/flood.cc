#include "tests/namespace/reachability/flood.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "deviceplugin/services/reachability/udp_socket.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 64;
constexpr std::uint16_t kPort = 40'000;

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

  // How many were sent, of kBatch.
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

}  // namespace

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
  for (const auto began = Clock::now();;) {
    const std::chrono::duration<double> passed = Clock::now() - began;
    if (plan.per_second > 0 && static_cast<double>(shared_->sent) > passed.count() * plan.per_second) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    shared_->sent += batch.Send(socket.get());
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

}  // namespace railhead::testing
