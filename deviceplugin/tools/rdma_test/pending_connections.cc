#include "deviceplugin/tools/rdma_test/pending_connections.h"

#include <poll.h>
#include <sys/socket.h>

#include <string>

#include "deviceplugin/tools/rdma_test/wire_protocol.h"

namespace railhead::rdmatest {
namespace {

// poll() finds a TCP socket readable from so many bytes on (tcp_poll in net/ipv4/tcp.c), or when no more
// can come.
void WakeAt(int fd, std::size_t bytes) {
  const int least = static_cast<int>(bytes);
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
}

bool IsReady(int fd) {
  pollfd polled{fd, POLLIN | POLLRDHUP, 0};
  if (poll(&polled, 1, 0) <= 0) return false;
  if ((polled.revents & ~POLLIN) != 0) return true;  // no more will come
  std::string said(kFrameHeader + kMaxPayload + kFrameSeal, '\0');
  const ssize_t got = recv(fd, said.data(), said.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got < static_cast<ssize_t>(kFrameHeader)) return false;
  const auto header = DecodeHeader(said.substr(0, kFrameHeader));
  if (!header || kFrameHeader + header->length <= static_cast<std::size_t>(got)) return true;
  WakeAt(fd, kFrameHeader + header->length);
  return false;
}

}  // namespace

void Lobby::Enter(UniqueFd connection, TimePoint until) {
  WakeAt(connection.get(), kFrameHeader);
  guests_.push_back({std::move(connection), until});
}

std::optional<UniqueFd> Lobby::TakeReady() {
  for (auto guest = guests_.begin(); guest != guests_.end(); ++guest) {
    if (!IsReady(guest->connection.get())) continue;
    UniqueFd ready = std::move(guest->connection);
    guests_.erase(guest);
    WakeAt(ready.get(), 1);
    return ready;
  }
  return std::nullopt;
}

std::size_t Lobby::Drop(TimePoint now) {
  std::size_t dropped = 0;
  while (!guests_.empty() && (guests_.size() > kMost || guests_.front().until <= now)) {
    guests_.pop_front();
    ++dropped;
  }
  return dropped;
}

std::vector<int> Lobby::fds() const {
  std::vector<int> fds;
  fds.reserve(guests_.size());
  for (const Guest& guest : guests_) fds.push_back(guest.connection.get());
  return fds;
}

std::optional<TimePoint> Lobby::FirstEnd() const {
  if (guests_.empty()) return std::nullopt;
  return guests_.front().until;
}

}  // namespace railhead::rdmatest
