// One reliable connection (RC queue pair) with the one buffer that it reads and writes.
//
// Create() makes it and brings it to INIT. The other end needs Address(). Connect() takes it to RTR and RTS:
// there the kernel resolves the peer by route and neighbour. It also checks that the GID's interface is in
// this namespace. Then write, send, receive and poll. The buffer is one registered memory region, its offsets
// are in bytes. Work requests may be in flight when the object goes: the device ends them.
// Ownership: everything; the VerbsDevice must outlive it. Moves. Threads: one.
// Errors name the device, the GID index, the peer's GID, errno or the completion's status, and a way out.
// Source: rdma-core 44 (libibverbs/man), drivers/infiniband/core/verbs.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/verbs/device.h"
#include "netns/verbs/mapped_buffer.h"

struct ibv_cq;
struct ibv_mr;
struct ibv_pd;
struct ibv_qp;

namespace railhead {

struct QueuePairSettings {
  int depth = 64;         // work requests in flight, of each kind
  std::size_t bytes = 0;  // of the buffer
  GidEntry gid;           // of the device's own table
  int traffic_class = 0;
  int service_level = 0;
  int timeout = 18;  // a retry after 4.096 us * 2^timeout; 7 of them
};

// What the other end needs.
struct QueuePairAddress {
  std::uint32_t number = 0;  // 24 bits
  std::uint32_t psn = 0;     // 24 bits, of the first packet that it sends
  IpAddress gid;             // 16 bytes
  std::uint32_t key = 0;     // rkey of the buffer
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  int mtu = 0;  // active MTU of the port

  bool operator==(const QueuePairAddress&) const = default;
};

class QueuePair {
 public:
  static Result<QueuePair> Create(const VerbsDevice& device, const QueuePairSettings& settings);

  [[nodiscard]] QueuePairAddress Address() const;
  // With the smaller of both ends' MTU.
  Result<void> Connect(const QueuePairAddress& peer);

  // `offset` is the same in both buffers.
  Result<void> PostWrite(std::size_t offset, std::size_t bytes);
  // From `from` of this buffer to `to` of the peer's.
  Result<void> PostWrite(std::size_t from, std::size_t to, std::size_t bytes);
  Result<void> PostSend(std::size_t offset, std::size_t bytes);
  Result<void> PostReceive(std::size_t offset, std::size_t bytes);

  // How many have completed since the last call, without waiting. The first failed one is the error.
  struct Completed {
    int sent = 0;  // writes and sends
    int received = 0;
  };
  Result<Completed> Poll();

  [[nodiscard]] std::uint8_t* data() const { return memory_.data(); }
  [[nodiscard]] int mtu() const { return mtu_; }

 private:
  struct Destroyer {
    void operator()(ibv_pd* pd) const;
    void operator()(ibv_mr* mr) const;
    void operator()(ibv_cq* cq) const;
    void operator()(ibv_qp* qp) const;
  };

  QueuePair() = default;
  Result<void> MakeBuffer(const VerbsDevice& device);
  Result<void> MakeQueues(const VerbsDevice& device);
  Result<void> ToInit();
  Result<void> ToReceive();
  Result<void> ToSend();
  Result<void> Post(int opcode, std::size_t from, std::size_t to, std::size_t bytes);
  [[nodiscard]] std::string Self() const;  // "mlx5_4 (GID index 3, ::ffff:10.0.0.1)"

  // In the order in which they are made; destroyed the other way round.
  QueuePairSettings settings_;
  std::string device_;
  MappedBuffer memory_;
  std::unique_ptr<ibv_pd, Destroyer> pd_;
  std::unique_ptr<ibv_mr, Destroyer> mr_;
  std::unique_ptr<ibv_cq, Destroyer> cq_;
  std::unique_ptr<ibv_qp, Destroyer> qp_;
  std::uint32_t psn_ = 0;
  unsigned int inline_bytes_ = 0;
  int mtu_ = 0;
  QueuePairAddress peer_;
};

}  // namespace railhead
