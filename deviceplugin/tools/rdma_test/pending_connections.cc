#include "deviceplugin/tools/rdma_test/pending_connections.h"

#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <utility>

namespace railhead::rdma_test {
namespace {

// poll() then finds the TCP socket readable only with that many bytes (tcp_poll in net/ipv4/tcp.c), or when
// no more can come.
void SetWakeSize(int fd, std::size_t bytes) {
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
  SetWakeSize(fd, kFrameHeader + header->length);
  return false;
}

}  // namespace

void PendingConnections::Add(UniqueFd connection, TimePoint until) {
  SetWakeSize(connection.get(), kFrameHeader);
  entries_.push_back({std::move(connection), until});
}

std::optional<UniqueFd> PendingConnections::TakeReady() {
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!IsReady(entry->connection.get())) continue;
    UniqueFd ready = std::move(entry->connection);
    entries_.erase(entry);
    SetWakeSize(ready.get(), 1);
    return ready;
  }
  return std::nullopt;
}

std::size_t PendingConnections::DropExpired(TimePoint now) {
  std::size_t dropped = 0;
  while (!entries_.empty() && (entries_.size() > kMost || entries_.front().until <= now)) {
    entries_.pop_front();
    ++dropped;
  }
  return dropped;
}

std::vector<int> PendingConnections::fds() const {
  std::vector<int> fds;
  fds.reserve(entries_.size());
  for (const Entry& entry : entries_) fds.push_back(entry.connection.get());
  return fds;
}

std::optional<TimePoint> PendingConnections::NextDeadline() const {
  if (entries_.empty()) return std::nullopt;
  return entries_.front().until;
}

}  // namespace railhead::rdma_test
