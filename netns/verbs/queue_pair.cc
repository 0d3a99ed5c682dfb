#include "netns/verbs/queue_pair.h"

#include <infiniband/verbs.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace railhead {
namespace {

constexpr std::uint32_t k24Bits = 0xffffff;
constexpr unsigned int kInlineBytes = 32;
constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint8_t kRetries = 7;
constexpr std::uint8_t kReceiverNotReadyTimer = 12;  // 0.64 ms
constexpr int kPollBatch = 32;
constexpr std::uint64_t kReceiveId = 1;
constexpr std::uint64_t kSendId = 2;

ibv_mtu MtuOf(int bytes) {
  int code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && (256 << code) <= bytes) ++code;
  return static_cast<ibv_mtu>(code);
}

// What to do about an errno of a queue pair that does not get to RTR.
std::string HintOfPeer(int failed) {
  switch (failed) {
    case ETIMEDOUT:
      return "the peer's address was not resolved: no route, another VLAN or subnet, or it answers no ARP; "
             "try ping "
             "-I INTERFACE from there";
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "the GID's interface has no route to the peer's address; check `ip rule` and `ip "
             "route get` "
             "there";
    case ENODEV:
      return "the GID's interface is in another network namespace or gone: the device or the GID index is "
             "not "
             "this pod's";
    case EINVAL:
      return "the GID index is empty by now, or the two GIDs are of different types or families";
    default:
      return {};
  }
}

std::string HintOfStatus(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "the peer does not answer: packets are lost on the way (VLAN, MTU along the rail, filters for "
             "UDP port "
             "4791, spoof check), or its process has ended";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the peer's process does not post receives: it has stopped";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
      return "the peer's device refused the address or key that its end has sent";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair is in state error: its port went down, or an earlier request failed";
    default:
      return {};
  }
}

std::uint32_t Random24() {
  std::uint32_t value = 0;
  // It need not be secret: only packets of an earlier connection must not fit.
  if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value)) value = 1;
  return value & k24Bits;
}

ibv_gid RawGid(const IpAddress& address) {
  ibv_gid gid{};
  std::memcpy(gid.raw, address.Data(), std::min(address.Size(), sizeof(gid.raw)));
  return gid;
}

}  // namespace

void QueuePair::Destroyer::operator()(ibv_pd* pd) const {
  (void)ibv_dealloc_pd(pd);
}
void QueuePair::Destroyer::operator()(ibv_mr* mr) const {
  (void)ibv_dereg_mr(mr);
}
void QueuePair::Destroyer::operator()(ibv_cq* cq) const {
  (void)ibv_destroy_cq(cq);
}
void QueuePair::Destroyer::operator()(ibv_qp* qp) const {
  (void)ibv_destroy_qp(qp);
}

std::string QueuePair::Self() const {
  return device_ + " (GID index " + std::to_string(settings_.gid.index) + ", " +
         settings_.gid.gid.ToString() + ")";
}

Result<QueuePair> QueuePair::Create(const VerbsDevice& device, const QueuePairSettings& settings) {
  QueuePair pair;
  pair.settings_ = settings;
  pair.device_ = device.name();
  pair.psn_ = Random24();
  pair.mtu_ = RH_TRY(device.Port()).mtu;
  RH_TRY(pair.MakeBuffer(device));
  RH_TRY(pair.MakeQueues(device));
  RH_TRY(pair.ToInit());
  return pair;
}

Result<void> QueuePair::MakeBuffer(const VerbsDevice& device) {
  memory_ = RH_TRY(MappedBuffer::Make(settings_.bytes));
  pd_.reset(ibv_alloc_pd(device.context()));
  if (!pd_) return FailSys(errno, "making a protection domain on " + Self());
  mr_.reset(ibv_reg_mr(pd_.get(), data(), settings_.bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  if (mr_) return {};
  Error error =
      SysError(errno, "registering a buffer of " + std::to_string(settings_.bytes) + " bytes on " + Self());
  if (error.sys_errno == ENOMEM) error.hint = "raise the limit of locked memory (ulimit -l), or run as root";
  return Fail(std::move(error));
}

Result<void> QueuePair::MakeQueues(const VerbsDevice& device) {
  const auto depth = static_cast<std::uint32_t>(settings_.depth);
  cq_.reset(ibv_create_cq(device.context(), 2 * settings_.depth, nullptr, nullptr, 0));
  if (!cq_) return FailSys(errno, "making a completion queue on " + Self());
  ibv_qp_init_attr attributes{};
  attributes.send_cq = cq_.get();
  attributes.recv_cq = cq_.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {depth, depth, 1, 1, kInlineBytes};
  qp_.reset(ibv_create_qp(pd_.get(), &attributes));
  if (!qp_) {
    // Some devices have nothing inline.
    attributes.cap = {depth, depth, 1, 1, 0};
    qp_.reset(ibv_create_qp(pd_.get(), &attributes));
  }
  if (!qp_) {
    Error error = SysError(errno, "making a queue pair of depth " + std::to_string(depth) + " on " + Self());
    error.hint = "try a smaller --depth; the device may have run out of queue pairs";
    return Fail(std::move(error));
  }
  inline_bytes_ = attributes.cap.max_inline_data;
  return {};
}

Result<void> QueuePair::ToInit() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kVerbsPort;
  attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  const int failed = ibv_modify_qp(qp_.get(), &attributes,
                                   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (failed != 0) return FailSys(failed, "initializing a queue pair on " + Self());
  return {};
}

QueuePairAddress QueuePair::Address() const {
  QueuePairAddress address;
  address.number = qp_->qp_num;
  address.psn = psn_;
  address.gid = settings_.gid.gid;
  address.key = mr_->rkey;
  address.address = reinterpret_cast<std::uintptr_t>(data());
  address.bytes = settings_.bytes;
  address.mtu = mtu_;
  return address;
}

Result<void> QueuePair::Connect(const QueuePairAddress& peer) {
  peer_ = peer;
  mtu_ = std::min(mtu_, peer.mtu);
  RH_TRY(ToReceive());
  return ToSend();
}

Result<void> QueuePair::ToReceive() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = MtuOf(mtu_);
  attributes.dest_qp_num = peer_.number;
  attributes.rq_psn = peer_.psn;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = kReceiverNotReadyTimer;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = kVerbsPort;
  attributes.ah_attr.sl = static_cast<std::uint8_t>(settings_.service_level);
  attributes.ah_attr.grh.dgid = RawGid(peer_.gid);
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(settings_.gid.index);
  attributes.ah_attr.grh.hop_limit = kHopLimit;
  attributes.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(settings_.traffic_class);
  const int failed = ibv_modify_qp(qp_.get(), &attributes,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (failed == 0) return {};
  Error error = SysError(failed, "connecting " + Self() + " to " + peer_.gid.ToString());
  error.hint = HintOfPeer(failed);
  return Fail(std::move(error));
}

Result<void> QueuePair::ToSend() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = static_cast<std::uint8_t>(settings_.timeout);
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kRetries;
  attributes.sq_psn = psn_;
  attributes.max_rd_atomic = 1;
  const int failed = ibv_modify_qp(qp_.get(), &attributes,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (failed != 0) return FailSys(failed, "starting to send from " + Self() + " to " + peer_.gid.ToString());
  return {};
}

Result<void> QueuePair::PostWrite(std::size_t offset, std::size_t bytes) {
  return Post(IBV_WR_RDMA_WRITE, offset, offset, bytes);
}

Result<void> QueuePair::PostWrite(std::size_t from, std::size_t to, std::size_t bytes) {
  return Post(IBV_WR_RDMA_WRITE, from, to, bytes);
}

Result<void> QueuePair::PostSend(std::size_t offset, std::size_t bytes) {
  return Post(IBV_WR_SEND, offset, 0, bytes);
}

Result<void> QueuePair::Post(int opcode, std::size_t from, std::size_t to, std::size_t bytes) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(data()) + from, static_cast<std::uint32_t>(bytes),
                mr_->lkey};
  ibv_send_wr request{};
  request.wr_id = kSendId;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = static_cast<ibv_wr_opcode>(opcode);
  request.send_flags = IBV_SEND_SIGNALED;
  if (bytes <= inline_bytes_) request.send_flags |= IBV_SEND_INLINE;
  request.wr.rdma.remote_addr = peer_.address + to;
  request.wr.rdma.rkey = peer_.key;
  ibv_send_wr* refused = nullptr;
  const int failed = ibv_post_send(qp_.get(), &request, &refused);
  if (failed != 0) return FailSys(failed, "sending from " + Self() + " to " + peer_.gid.ToString());
  return {};
}

Result<void> QueuePair::PostReceive(std::size_t offset, std::size_t bytes) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(data()) + offset, static_cast<std::uint32_t>(bytes),
                mr_->lkey};
  ibv_recv_wr request{};
  request.wr_id = kReceiveId;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  const int failed = ibv_post_recv(qp_.get(), &request, &refused);
  if (failed != 0) return FailSys(failed, "posting a receive on " + Self());
  return {};
}

Result<QueuePair::Completed> QueuePair::Poll() {
  std::array<ibv_wc, kPollBatch> batch;
  const int count = ibv_poll_cq(cq_.get(), static_cast<int>(batch.size()), batch.data());
  if (count < 0) return Fail(ErrorCode::kIo, "polling the completion queue of " + Self() + " failed");
  Completed completed;
  for (int i = 0; i < count; ++i) {
    const ibv_wc& one = batch[static_cast<std::size_t>(i)];
    if (one.status != IBV_WC_SUCCESS) {
      return Fail(
          ErrorCode::kIo,
          "RDMA between " + Self() + " and " + peer_.gid.ToString() + ": " + ibv_wc_status_str(one.status),
          HintOfStatus(one.status));
    }
    ++(one.wr_id == kReceiveId ? completed.received : completed.sent);
  }
  return completed;
}

}  // namespace railhead
