#include "deviceplugin/services/reachability/rdma_echo.h"

#include <poll.h>

#include <array>
#include <random>
#include <utility>

#include "netns/base/mutex.h"

namespace railhead::reachability {

Result<std::unique_ptr<RdmaEcho>> RdmaEcho::Start(Datagrams datagrams, std::function<void()> lost) {
  auto worker = RH_TRY(Worker::Make());
  return std::unique_ptr<RdmaEcho>(new RdmaEcho(std::move(datagrams), std::move(lost), std::move(worker)));
}

RdmaEcho::RdmaEcho(Datagrams datagrams, std::function<void()> lost, std::unique_ptr<Worker> worker)
    : own_(datagrams.Own()),
      device_(datagrams.device()),
      gid_index_(datagrams.gid().index),
      lost_call_(std::move(lost)),
      worker_(std::move(worker)),
      datagrams_(std::move(datagrams)) {
  // An answer to a probe of an earlier railheadd must not match.
  std::random_device random;
  next_token_ = (std::uint64_t{random()} << 32U) | random();
  thread_ = std::thread([this] { Loop(); });
}

RdmaEcho::~RdmaEcho() {
  worker_->RequestStop();
  thread_.join();
}

bool RdmaEcho::IsLost() const {
  const MutexLock lock(mutex_);
  return lost_ || !datagrams_->HasItsGid();
}

void RdmaEcho::Loop() {
  std::array<pollfd, 2> waiting{};
  {
    const MutexLock lock(mutex_);
    waiting = {{{datagrams_->completions_fd(), POLLIN, 0}, {datagrams_->events_fd(), POLLIN, 0}}};
  }
  for (Next next = Next::kWait; next != Next::kEnd && !worker_->StopRequested();) {
    const bool more = next == Next::kMore;
    worker_->Wait(more ? Clock::now() : Clock::time_point::max(), waiting);
    next = Serve(more || waiting[0].revents != 0, waiting[1].revents != 0);
  }
  Lose();
}

RdmaEcho::Next RdmaEcho::Serve(bool completions, bool events) {
  const MutexLock lock(mutex_);
  if (worker_->StopRequested() || (events && datagrams_->IsLost())) return Next::kEnd;
  if (!completions) return Next::kWait;
  const auto taken = datagrams_->Take();
  if (!taken) return Next::kEnd;
  // After a message that took a second the rest is skipped: this thread may have to end.
  for (const Datagrams::Received& one : taken->received) {
    if (!Handle(one)) break;
  }
  return taken->more ? Next::kMore : Next::kWait;
}

void RdmaEcho::Lose() {
  {
    const MutexLock lock(mutex_);
    lost_ = true;
    datagrams_.reset();
    open_.clear();
    changed_.notify_all();
  }
  lost_call_();
}

void RdmaEcho::SetKeys(std::shared_ptr<const SharedKeys> keys) {
  const MutexLock lock(mutex_);
  keys_ = std::move(keys);
}

std::vector<std::uint8_t> RdmaEcho::PayloadTo(const IpAddress& to, const ProbeMessage& message,
                                              bool is_signed) const {
  return is_signed ? SignedBytesOf(message, *keys_, {own_.address, to}) : BytesOf(message);
}

void RdmaEcho::SetPeers(std::set<IpAddress> peers) {
  const MutexLock lock(mutex_);
  const auto now = Clock::now();
  std::erase_if(leaving_, [&](const auto& one) { return one.second < now; });
  for (const IpAddress& peer : peers_) {
    if (!peers.contains(peer)) leaving_[peer] = now + kFormerPeer;
  }
  peers_ = std::move(peers);
  limits_.SetPeers(peers_);
  no_neighbours_.clear();
}

// false: the answer took too long.
bool RdmaEcho::Answer(const DatagramEnd& to, const CheckedProbe& probe) {
  const auto now = Clock::now();
  const auto missed = no_neighbours_.find(to.address);
  if (missed != no_neighbours_.end() && now < missed->second + kNoNeighbour) return true;
  if (!limits_.Allow(to.address, now)) return true;
  ProbeMessage answer;
  answer.answer = true;
  answer.session = probe.message.session;
  answer.token = probe.message.token;
  // An answer that cannot be sent counts as lost.
  const auto sent = datagrams_->Send(to, PayloadTo(to.address, answer, probe.is_signed),
                                     static_cast<std::uint32_t>(answer.token));
  if (sent || sent.error().code != ErrorCode::kNotFound) return true;
  no_neighbours_[to.address] = Clock::now();
  return false;
}

bool RdmaEcho::Answers(const IpAddress& peer) const {
  if (peers_.contains(peer)) return true;
  const auto left = leaving_.find(peer);
  return left != leaving_.end() && Clock::now() < left->second;
}

bool RdmaEcho::Handle(const Datagrams::Received& received) {
  if (!Answers(received.from.address)) return true;
  const auto checked = CheckProbe(received.Payload(), keys_.get(), {received.from.address, own_.address});
  if (!checked) return true;
  const ProbeMessage& message = checked->message;
  if (!message.answer) return Answer(received.from, *checked);
  const auto probe = open_.find(message.token);
  if (probe == open_.end() || probe->second.session != message.session ||
      probe->second.peer != received.from.address)
    return true;
  ++counts_[message.session].answered;
  open_.erase(probe);
  if (open_.empty()) changed_.notify_all();
  return true;
}

void RdmaEcho::SendProbes(std::uint64_t session, const DatagramEnd& peer) {
  const MutexLock lock(mutex_);
  if (!datagrams_) return;
  // The peer has just answered.
  no_neighbours_.erase(peer.address);
  for (int i = 0; i < kProbes; ++i) {
    ProbeMessage probe;
    probe.session = session;
    probe.token = next_token_++;
    // A probe that this node cannot send says nothing about the peer.
    const auto sent = datagrams_->Send(peer, PayloadTo(peer.address, probe, keys_ != nullptr),
                                       static_cast<std::uint32_t>(probe.token));
    if (!sent) {
      refused_ = sent.error().message;
      return;
    }
    open_[probe.token] = {session, peer.address};
    ++counts_[session].sent;
  }
}

void RdmaEcho::Await(Clock::time_point until) {
  MutexLock lock(mutex_);
  changed_.wait_until(lock, until, [this]() RH_REQUIRES(mutex_) { return open_.empty(); });
}

std::map<std::uint64_t, RdmaEcho::Count> RdmaEcho::TakeCounts() {
  const MutexLock lock(mutex_);
  open_.clear();
  auto counts = std::exchange(counts_, {});
  send_failure_ = counts.empty() ? refused_ : "";
  refused_.clear();
  // If this node's device went away, the peers are not at fault.
  if (lost_) counts.clear();
  std::erase_if(counts, [](const auto& one) { return one.second.sent < kProbes; });
  return counts;
}

std::string RdmaEcho::SendFailure() const {
  const MutexLock lock(mutex_);
  return send_failure_;
}

}  // namespace railhead::reachability
