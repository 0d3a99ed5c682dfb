// Unreliable datagrams (a UD queue pair) from one GID of an RDMA device.
//
// Nothing is connected: each datagram says where it goes, and its headers say who sent it. So one queue pair
// reaches all nodes of a rail, and an idle one costs neither end anything. The kernel looks for the neighbour
// of a GID in the network namespace of the GID's interface, whatever the caller's namespace
// (set_addr_netns_by_gid_rcu in drivers/infiniband/core/addr.c). It looks for a second at most: Send() to a
// silent host takes that long.
// A child of the process gets none of the memory that is the NIC's.
// Ownership: everything, the device included. Moves.
// Threads: one at a time; descriptors may be polled by another.
// Errors name the device, the GID index and errno.
// Source: rdma-core 44 (libibverbs/man); InfiniBand Architecture 1.2.1, annex A17: the place of the IP header
// in a received datagram.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/verbs/device.h"
#include "netns/verbs/mapped_buffer.h"

struct ibv_ah;
struct ibv_comp_channel;
struct ibv_cq;
struct ibv_mr;
struct ibv_pd;
struct ibv_qp;
struct ibv_wc;

namespace railhead {

struct DatagramSettings {
  GidEntry gid;  // of the device's own table; RoCE v2
  int traffic_class = 0;
  int service_level = 0;
};

// Where datagrams come from and go to.
struct DatagramEnd {
  IpAddress address;         // of the GID: IPv4 or IPv6
  std::uint32_t number = 0;  // of the queue pair, 24 bits

  bool operator==(const DatagramEnd&) const = default;
};

class Datagrams {
 public:
  static constexpr std::size_t kMostBytes = 64;  // of one; a longer one is passed over
  static constexpr std::size_t kInFlight = 128;  // sent and not yet completed
  static constexpr std::size_t kWaiting = 128;   // received and not yet taken

  struct Received {
    DatagramEnd from;
    std::size_t size = 0;
    std::array<std::uint8_t, kMostBytes> bytes{};

    [[nodiscard]] std::span<const std::uint8_t> Payload() const { return {bytes.data(), size}; }
  };

  struct Completions {
    std::vector<Received> received;  // kWaiting at most
    bool more = false;               // Take() again, without waiting
  };

  Datagrams(Datagrams&&) = default;
  // Member by member it would close the device first.
  Datagrams& operator=(Datagrams&&) = delete;
  static Result<Datagrams> Open(VerbsDevice device, const DatagramSettings& settings);

  [[nodiscard]] DatagramEnd Own() const;
  [[nodiscard]] const std::string& device() const { return device_->name(); }
  [[nodiscard]] const GidEntry& gid() const { return settings_.gid; }

  // `flow`: 20 bits; NICs make the UDP source port from it, so that switches choose a path by it. Errors:
  // kUnavailable while kInFlight datagrams are in flight; kNotFound if `to` is not a neighbour.
  Result<void> Send(const DatagramEnd& to, std::span<const std::uint8_t> payload, std::uint32_t flow);
  // Readable when something may be taken, once Take() has found nothing more.
  [[nodiscard]] int completions_fd() const;
  // Received datagrams. Also completes the sent ones.
  Result<Completions> Take();
  // Readable when something has happened to device or port.
  [[nodiscard]] int events_fd() const;
  // Whether the table still has the GID where it was: addresses come and go, and indices with them.
  [[nodiscard]] bool HasItsGid() const;
  // true: the port is down, the GID moves or the device goes. As long as this object exists, it blocks that.
  [[nodiscard]] bool IsLost();

 private:
  struct Destroyer {
    void operator()(ibv_ah* address) const;
    void operator()(ibv_comp_channel* channel) const;
    void operator()(ibv_cq* queue) const;
    void operator()(ibv_mr* region) const;
    void operator()(ibv_pd* domain) const;
    void operator()(ibv_qp* pair) const;
  };

  Datagrams(VerbsDevice device, DatagramSettings settings);
  Result<void> MakeBuffer();
  Result<void> MakeQueues();
  Result<void> Ready();
  Result<void> PostReceive(std::size_t slot);
  Result<std::unique_ptr<ibv_ah, Destroyer>> AddressHandle(const IpAddress& to, std::uint32_t flow);
  [[nodiscard]] std::optional<Received> ReceivedBy(const ibv_wc& completion) const;
  [[nodiscard]] std::string Self() const;

  // In the order in which they are made; destroyed the other way round.
  std::unique_ptr<VerbsDevice> device_;
  DatagramSettings settings_;
  MappedBuffer buffer_;
  std::unique_ptr<ibv_pd, Destroyer> domain_;
  std::unique_ptr<ibv_mr, Destroyer> region_;
  std::unique_ptr<ibv_comp_channel, Destroyer> channel_;
  std::unique_ptr<ibv_cq, Destroyer> queue_;
  std::vector<std::unique_ptr<ibv_ah, Destroyer>> in_flight_;  // by slot: where it goes to
  std::vector<std::size_t> free_;                              // slots
  std::unique_ptr<ibv_qp, Destroyer> pair_;
};

// The sender by `headers`, the 40 bytes that stand before each datagram. Returns nullopt when they are
// neither IPv4's (in the last 20 of them) nor IPv6's.
std::optional<IpAddress> SenderIn(std::span<const std::uint8_t> headers);

}  // namespace railhead
