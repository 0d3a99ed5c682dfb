#include "netns/verbs/datagrams.h"

#include <fcntl.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

namespace railhead {
namespace {

// Before each datagram the NIC reserves room for a global routing header, where RoCE v2 has the IP header.
constexpr std::size_t kHeaders = 40;
constexpr std::size_t kIpv4At = 20;
constexpr std::uint8_t kIpv4Begin = 0x45;  // without options, as RoCE v2 wants it
constexpr std::size_t kIpv4Source = 12;
constexpr std::size_t kIpv6Source = 8;
// The largest datagram. A datagram larger than its buffer ends the queue pair, and any host can send one.
constexpr std::size_t kLongest = 4096;
constexpr std::size_t kReceiveRoom = 4160;
constexpr std::size_t kSendAt = Datagrams::kWaiting * kReceiveRoom;
constexpr std::uint8_t kDatagramHops = 64;
constexpr int kLastGidIndex = 255;
constexpr std::uint32_t kFlowLabel = 0xfffff;
// A queue pair takes datagrams with its own key only; all of ours have this key. The highest bit is the
// kernel's.
constexpr std::uint32_t kQueueKey = 0x52487270;
constexpr std::uint64_t kSent = std::uint64_t{1} << 32;
constexpr int kCompletionsAtOnce = 32;

static_assert(kHeaders + kLongest <= kReceiveRoom);

// The checksum of an IPv4 header: RFC 791, 3.1.
bool SumsUp(std::span<const std::uint8_t> header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < header.size(); i += 2)
    sum += static_cast<std::uint32_t>(header[i]) << 8U | header[i + 1];
  sum = (sum & 0xffffU) + (sum >> 16U);
  return ((sum & 0xffffU) + (sum >> 16U)) == 0xffffU;
}

Result<void> NeverBlocks(int fd, const std::string& of) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
    return FailSys(errno, "setting up the events of " + of);
  return {};
}

}  // namespace

std::optional<IpAddress> SenderIn(std::span<const std::uint8_t> headers) {
  if (headers.size() < kHeaders) return std::nullopt;
  const auto ipv4 = headers.subspan(kIpv4At, kHeaders - kIpv4At);
  const bool may_be_ipv6 = headers[0] >> 4U == 6;
  // What stands before an IPv4 header may be anything, a 6 as well.
  if (ipv4[0] == kIpv4Begin && (!may_be_ipv6 || SumsUp(ipv4)))
    return IpAddress::FromBytes(ipv4.data() + kIpv4Source, 4);
  if (may_be_ipv6) return IpAddress::FromBytes(headers.data() + kIpv6Source, 16);
  return std::nullopt;
}

void Datagrams::Destroyer::operator()(ibv_ah* address) const {
  (void)ibv_destroy_ah(address);
}
void Datagrams::Destroyer::operator()(ibv_comp_channel* channel) const {
  (void)ibv_destroy_comp_channel(channel);
}
void Datagrams::Destroyer::operator()(ibv_cq* queue) const {
  (void)ibv_destroy_cq(queue);
}
void Datagrams::Destroyer::operator()(ibv_mr* region) const {
  (void)ibv_dereg_mr(region);
}
void Datagrams::Destroyer::operator()(ibv_pd* domain) const {
  (void)ibv_dealloc_pd(domain);
}
void Datagrams::Destroyer::operator()(ibv_qp* pair) const {
  (void)ibv_destroy_qp(pair);
}

Datagrams::Datagrams(VerbsDevice device, DatagramSettings settings)
    : device_(std::make_unique<VerbsDevice>(std::move(device))), settings_(std::move(settings)) {}

std::string Datagrams::Self() const {
  return device_->name() + " (GID index " + std::to_string(settings_.gid.index) + ", " +
         settings_.gid.gid.ToString() + ")";
}

Result<Datagrams> Datagrams::Open(VerbsDevice device, const DatagramSettings& settings) {
  if (settings.gid.index > kLastGidIndex)
    return Fail(ErrorCode::kUnsupported, "GID index " + std::to_string(settings.gid.index) + " of " +
                                             device.name() + " is beyond those that verbs can name");
  // Kernels before 5.12 do not copy the pages of a NIC at fork: a child would get them instead of us.
  (void)ibv_fork_init();
  Datagrams datagrams(std::move(device), settings);
  RH_TRY(datagrams.MakeBuffer());
  RH_TRY(datagrams.MakeQueues());
  RH_TRY(datagrams.Ready());
  return datagrams;
}

Result<void> Datagrams::MakeBuffer() {
  buffer_ = RH_TRY(MappedBuffer::Make(kSendAt + kInFlight * kMostBytes));
  domain_.reset(ibv_alloc_pd(device_->context()));
  if (!domain_) return FailSys(errno, "making a protection domain on " + Self());
  constexpr unsigned int kAccess = IBV_ACCESS_LOCAL_WRITE;
  region_.reset(ibv_reg_mr(domain_.get(), buffer_.data(), buffer_.size(), kAccess));
  if (region_) return {};
  Error error = SysError(errno, "registering a buffer on " + Self());
  if (error.sys_errno == ENOMEM) error.hint = "raise the limit of locked memory (LimitMEMLOCK, ulimit -l)";
  return Fail(std::move(error));
}

Result<void> Datagrams::MakeQueues() {
  ibv_context* const context = device_->context();
  channel_.reset(ibv_create_comp_channel(context));
  if (!channel_) return FailSys(errno, "making a completion channel on " + Self());
  RH_TRY(NeverBlocks(channel_->fd, Self()));
  RH_TRY(NeverBlocks(context->async_fd, Self()));
  queue_.reset(ibv_create_cq(context, kInFlight + kWaiting, nullptr, channel_.get(), 0));
  if (!queue_) return FailSys(errno, "making a completion queue on " + Self());
  ibv_qp_init_attr attributes{};
  attributes.send_cq = queue_.get();
  attributes.recv_cq = queue_.get();
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap = {kInFlight, kWaiting, 1, 1, 0};
  pair_.reset(ibv_create_qp(domain_.get(), &attributes));
  if (!pair_) return FailSys(errno, "making a queue pair on " + Self());
  in_flight_.resize(kInFlight);
  free_.resize(kInFlight);
  std::iota(free_.begin(), free_.end(), std::size_t{0});
  return {};
}

// INIT: receives can be posted; then RTR and RTS.
Result<void> Datagrams::Ready() {
  const auto go = [this](ibv_qp_attr attributes, int mask) -> Result<void> {
    const int failed = ibv_modify_qp(pair_.get(), &attributes, mask | IBV_QP_STATE);
    if (failed != 0) return FailSys(failed, "setting up a queue pair on " + Self());
    return {};
  };
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kVerbsPort;
  attributes.qkey = kQueueKey;
  RH_TRY(go(attributes, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
  if (const int failed = ibv_req_notify_cq(queue_.get(), 0); failed != 0)
    return FailSys(failed, "requesting completion events of " + Self());
  for (std::size_t slot = 0; slot < kWaiting; ++slot) RH_TRY(PostReceive(slot));
  attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  RH_TRY(go(attributes, 0));
  attributes.qp_state = IBV_QPS_RTS;
  return go(attributes, IBV_QP_SQ_PSN);
}

Result<void> Datagrams::PostReceive(std::size_t slot) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(buffer_.data()) + slot * kReceiveRoom, kReceiveRoom,
                region_->lkey};
  ibv_recv_wr request{};
  request.wr_id = slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  const int failed = ibv_post_recv(pair_.get(), &request, &refused);
  if (failed != 0) return FailSys(failed, "posting a receive on " + Self());
  return {};
}

DatagramEnd Datagrams::Own() const {
  return {AddressOfGid(settings_.gid.gid), pair_->qp_num};
}

int Datagrams::completions_fd() const {
  return channel_->fd;
}

int Datagrams::events_fd() const {
  return device_->context()->async_fd;
}

Result<std::unique_ptr<ibv_ah, Datagrams::Destroyer>> Datagrams::AddressHandle(const IpAddress& to,
                                                                               std::uint32_t flow) {
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = kVerbsPort;
  attributes.sl = static_cast<std::uint8_t>(settings_.service_level);
  const IpAddress gid = GidOf(to);
  std::memcpy(attributes.grh.dgid.raw, gid.Data(), sizeof attributes.grh.dgid.raw);
  attributes.grh.sgid_index = static_cast<std::uint8_t>(settings_.gid.index);
  attributes.grh.flow_label = flow & kFlowLabel;
  attributes.grh.hop_limit = kDatagramHops;
  attributes.grh.traffic_class = static_cast<std::uint8_t>(settings_.traffic_class);
  std::unique_ptr<ibv_ah, Destroyer> handle(ibv_create_ah(domain_.get(), &attributes));
  if (handle) return handle;
  Error error = SysError(errno, "finding " + to.ToString() + " from " + Self());
  if (error.sys_errno == ETIMEDOUT || error.sys_errno == EHOSTUNREACH || error.sys_errno == ENETUNREACH)
    error.code = ErrorCode::kNotFound;
  return Fail(std::move(error));
}

Result<void> Datagrams::Send(const DatagramEnd& to, std::span<const std::uint8_t> payload,
                             std::uint32_t flow) {
  if (payload.size() > kMostBytes) return Fail(ErrorCode::kInvalid, "a datagram that is too long");
  if (free_.empty()) return Fail(ErrorCode::kUnavailable, "too many datagrams in flight on " + Self());
  auto handle = RH_TRY(AddressHandle(to.address, flow));
  const std::size_t slot = free_.back();
  std::uint8_t* const bytes = buffer_.data() + kSendAt + slot * kMostBytes;
  std::copy(payload.begin(), payload.end(), bytes);
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes), static_cast<std::uint32_t>(payload.size()),
                region_->lkey};
  ibv_send_wr request{};
  request.wr_id = kSent | slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.ud.ah = handle.get();
  request.wr.ud.remote_qpn = to.number;
  request.wr.ud.remote_qkey = kQueueKey;
  ibv_send_wr* refused = nullptr;
  const int failed = ibv_post_send(pair_.get(), &request, &refused);
  if (failed != 0) return FailSys(failed, "sending from " + Self() + " to " + to.address.ToString());
  in_flight_[slot] = std::move(handle);
  free_.pop_back();
  return {};
}

std::optional<Datagrams::Received> Datagrams::ReceivedBy(const ibv_wc& completion) const {
  if (completion.byte_len < kHeaders || completion.byte_len > kHeaders + kMostBytes) return std::nullopt;
  if ((completion.wc_flags & IBV_WC_GRH) == 0) return std::nullopt;
  const std::uint8_t* const begin = buffer_.data() + completion.wr_id * kReceiveRoom;
  const auto sender = SenderIn({begin, kHeaders});
  if (!sender) return std::nullopt;
  Received received;
  received.from = {*sender, completion.src_qp};
  received.size = completion.byte_len - kHeaders;
  std::copy_n(begin + kHeaders, received.size, received.bytes.begin());
  return received;
}

Result<Datagrams::Completions> Datagrams::Take() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
  // Before polling: a completion between the two still raises an event.
  if (const int failed = ibv_req_notify_cq(queue_.get(), 0); failed != 0)
    return FailSys(failed, "requesting events of completions on " + Self());
  Completions completions;
  for (std::size_t seen = 0; seen < kWaiting; seen += kCompletionsAtOnce) {
    std::array<ibv_wc, kCompletionsAtOnce> batch;
    const int count = ibv_poll_cq(queue_.get(), static_cast<int>(batch.size()), batch.data());
    if (count < 0) return Fail(ErrorCode::kIo, "polling the completion queue of " + Self() + " failed");
    for (int i = 0; i < count; ++i) {
      const ibv_wc& one = batch[static_cast<std::size_t>(i)];
      if ((one.wr_id & kSent) != 0) {
        const auto slot = static_cast<std::size_t>(one.wr_id & ~kSent);
        in_flight_[slot].reset();
        free_.push_back(slot);
      } else if (one.status == IBV_WC_SUCCESS) {
        if (auto received = ReceivedBy(one)) completions.received.push_back(*received);
        RH_TRY(PostReceive(static_cast<std::size_t>(one.wr_id)));
      }
      // It is the queue pair's failure, which is of no use from then on.
      if (one.status != IBV_WC_SUCCESS)
        return Fail(ErrorCode::kIo, "RDMA from " + Self() + ": " + ibv_wc_status_str(one.status));
    }
    if (count < static_cast<int>(batch.size())) return completions;
  }
  completions.more = true;
  return completions;
}

bool Datagrams::HasItsGid() const {
  ibv_gid now{};
  if (ibv_query_gid(device_->context(), kVerbsPort, settings_.gid.index, &now) != 0) return false;
  const IpAddress own = GidOf(settings_.gid.gid);
  return std::equal(own.Data(), own.Data() + own.Size(), now.raw);
}

bool Datagrams::IsLost() {
  bool lost = false;
  ibv_async_event event{};
  while (ibv_get_async_event(device_->context(), &event) == 0) {
    lost = lost || event.event_type == IBV_EVENT_DEVICE_FATAL || event.event_type == IBV_EVENT_PORT_ERR ||
           event.event_type == IBV_EVENT_CQ_ERR || event.event_type == IBV_EVENT_QP_FATAL ||
           (event.event_type == IBV_EVENT_GID_CHANGE && !HasItsGid());
    ibv_ack_async_event(&event);
  }
  return lost;
}

}  // namespace railhead
