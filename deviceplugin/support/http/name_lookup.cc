#include "deviceplugin/support/http/name_lookup.h"

#include <ares.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include "netns/base/addresses.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

namespace railhead::http {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// After the addresses of one family, for those of the other: some name servers do not answer to AAAA at all
// (RFC 8305, section 3).
constexpr milliseconds kOtherFamily{200};
constexpr const char* kHint = "see the node's /etc/resolv.conf, or name the host by its address";

SocketAddress Packed(const void* address, std::size_t size) {
  SocketAddress packed;
  std::memcpy(&packed.address, address, size);
  packed.length = static_cast<socklen_t>(size);
  return packed;
}

Result<std::vector<SocketAddress>> UnixAddress(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path)
    return Fail(ErrorCode::kInvalid, path + " is too long for a socket: it has more than 107 bytes");
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return std::vector{Packed(&address, sizeof address)};
}

// `port` is in network order.
SocketAddress NumericAddress(const IpAddress& ip, in_port_t port) {
  if (ip.IsV4()) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    std::memcpy(&address.sin_addr, ip.Data(), ip.Size());
    return Packed(&address, sizeof address);
  }
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = port;
  std::memcpy(&address.sin6_addr, ip.Data(), ip.Size());
  return Packed(&address, sizeof address);
}

// Sends nothing. (A host without IPv6 gets the IPv6 addresses of a name, too.)
bool HasRoute(const SocketAddress& to) {
  const UniqueFd fd(::socket(to.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.valid() && ::connect(fd.get(), to.get(), to.length) == 0;
}

struct FreeAddresses {
  void operator()(ares_addrinfo* list) const { ::ares_freeaddrinfo(list); }
};

struct Answer {
  bool done = false;
  int status = ARES_SUCCESS;
  std::unique_ptr<ares_addrinfo, FreeAddresses> list;

  [[nodiscard]] bool good() const { return done && status == ARES_SUCCESS && list != nullptr; }
};

struct Answers {
  Answer v4;
  Answer v6;
};

void Keep(void* answer, int status, int /*timeouts*/, ares_addrinfo* list) {
  auto* kept = static_cast<Answer*>(answer);
  kept->done = true;
  kept->status = status;
  kept->list.reset(list);
}

// The sockets of a channel, and the events that it waits for.
using Sockets = std::map<int, short>;

void Watch(void* sockets, ares_socket_t fd, int readable, int writable) {
  auto* watched = static_cast<Sockets*>(sockets);
  const int events = (readable != 0 ? POLLIN : 0) | (writable != 0 ? POLLOUT : 0);
  if (events == 0) {
    watched->erase(fd);
  } else {
    (*watched)[fd] = static_cast<short>(events);
  }
}

struct CloseChannel {
  void operator()(ares_channel channel) const { ::ares_destroy(channel); }
};
using Channel = std::unique_ptr<ares_channeldata, CloseChannel>;

// `sockets` has to outlive the channel.
Result<Channel> OpenChannel(const NameServers& servers, milliseconds time, Sockets* sockets) {
  // Not thread-safe by itself. On Linux it only counts, also for gRPC's own calls.
  static const int initialised = ::ares_library_init(ARES_LIB_INIT_ALL);
  std::string configuration = servers.configuration;
  std::string files_first = "fb";
  ares_options options{};
  options.resolvconf_path = configuration.data();
  options.lookups = files_first.data();
  options.udp_port = servers.port;
  options.tcp_port = servers.port;
  options.timeout = std::max(1, static_cast<int>(time.count() / 3));
  options.sock_state_cb = Watch;
  options.sock_state_cb_data = sockets;
  ares_channel channel = nullptr;
  const int status =
      initialised != ARES_SUCCESS
          ? initialised
          : ::ares_init_options(&channel, &options,
                                ARES_OPT_RESOLVCONF | ARES_OPT_LOOKUPS | ARES_OPT_UDP_PORT |
                                    ARES_OPT_TCP_PORT | ARES_OPT_TIMEOUTMS | ARES_OPT_SOCK_STATE_CB);
  if (status != ARES_SUCCESS) {
    return Fail(ErrorCode::kUnavailable, "reading " + servers.configuration + ": " + ::ares_strerror(status),
                kHint);
  }
  return Channel(channel);
}

// One wait, not longer than `left`, and what follows from it.
Result<void> Step(ares_channel channel, const Sockets& sockets, milliseconds left) {
  timeval longest{left.count() / 1000, left.count() % 1000 * 1000};
  timeval kept{};
  const timeval* wait = ::ares_timeout(channel, &longest, &kept);
  std::vector<pollfd> polled;
  polled.reserve(sockets.size());
  for (const auto& [fd, events] : sockets) polled.push_back({fd, events, 0});
  const int ready = ::poll(polled.data(), polled.size(),
                           static_cast<int>(wait->tv_sec * 1000 + (wait->tv_usec + 999) / 1000));
  if (ready < 0 && errno != EINTR) return FailSys(errno, "waiting for a name server");
  // Also looks at what has timed out.
  if (ready <= 0) ::ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  for (const pollfd& one : polled) {
    if (ready <= 0 || one.revents == 0) continue;
    ::ares_process_fd(channel, (one.revents & ~POLLOUT) != 0 ? one.fd : ARES_SOCKET_BAD,
                      (one.revents & POLLOUT) != 0 ? one.fd : ARES_SOCKET_BAD);
  }
  return {};
}

// It answers at once if no name server has to be asked. Else it answers in a Step, or when the channel ends.
void Request(ares_channel channel, const std::string& host, int family, Answer* answer) {
  ares_addrinfo_hints hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  ::ares_getaddrinfo(channel, host.c_str(), nullptr, &hints, Keep, answer);
}

// What came by the deadline.
Result<Answers> Ask(const std::string& host, Deadline deadline, const NameServers& servers) {
  const auto left = [&] { return std::chrono::ceil<milliseconds>(deadline - Clock::now()); };
  Answers answers;
  Sockets sockets;
  const Channel channel = RH_TRY(OpenChannel(servers, left(), &sockets));
  Request(channel.get(), host, AF_INET, &answers.v4);
  if (!answers.v4.good()) Request(channel.get(), host, AF_INET6, &answers.v6);
  const bool is_in_file = answers.v4.good() || answers.v6.good();
  bool has_one = false;
  while (!is_in_file && !(answers.v4.done && answers.v6.done)) {
    if (!has_one && (answers.v4.good() || answers.v6.good())) {
      has_one = true;
      deadline = std::min(deadline, Clock::now() + kOtherFamily);
    }
    const milliseconds more = left();
    if (more.count() <= 0) break;
    RH_TRY(Step(channel.get(), sockets, more));
  }
  // The channel's end answers what is open: not to be taken for an answer.
  Answers kept;
  if (answers.v4.done) kept.v4 = std::move(answers.v4);
  if (answers.v6.done) kept.v6 = std::move(answers.v6);
  return kept;
}

// ARES_ETIMEOUT: no answer by the deadline. The name may have addresses of one family only.
int StatusOf(const Answers& answers) {
  if (answers.v4.good() || answers.v6.good()) return ARES_SUCCESS;
  if (!answers.v4.done || !answers.v6.done) return ARES_ETIMEOUT;
  return answers.v4.status;
}

void AddAddresses(const ares_addrinfo& list, in_port_t port, std::vector<SocketAddress>& addresses) {
  for (const ares_addrinfo_node* node = list.nodes; node != nullptr; node = node->ai_next) {
    if (node->ai_family == AF_INET && node->ai_addrlen >= sizeof(sockaddr_in)) {
      sockaddr_in address{};
      std::memcpy(&address, node->ai_addr, sizeof address);
      address.sin_port = port;
      addresses.push_back(Packed(&address, sizeof address));
    } else if (node->ai_family == AF_INET6 && node->ai_addrlen >= sizeof(sockaddr_in6)) {
      sockaddr_in6 address{};
      std::memcpy(&address, node->ai_addr, sizeof address);
      address.sin6_port = port;
      addresses.push_back(Packed(&address, sizeof address));
    }
  }
}

// IPv6 first (RFC 6724).
std::vector<SocketAddress> AddressesOf(const Answers& answers, in_port_t port) {
  std::vector<SocketAddress> addresses;
  for (const Answer* answer : {&answers.v6, &answers.v4}) {
    if (answer->good()) AddAddresses(*answer->list, port, addresses);
  }
  if (std::ranges::any_of(addresses, HasRoute)) std::erase_if(addresses, std::not_fn(HasRoute));
  return addresses;
}

}  // namespace

Result<std::vector<SocketAddress>> LookUp(const std::string& host, const std::string& port, Deadline deadline,
                                          const NameServers& servers) {
  if (host.starts_with('/')) return UnixAddress(host);
  const auto number = ParseInt(port);
  if (!number || *number < 1 || *number > 65535) return Fail(ErrorCode::kInvalid, port + " is no port");
  const in_port_t in_order = htons(static_cast<std::uint16_t>(*number));
  if (const auto ip = IpAddress::Parse(host); ip) return std::vector{NumericAddress(*ip, in_order)};
  const std::string what = "looking up '" + host + "'";
  const auto answers = RH_TRY_WRAP(Ask(host, deadline, servers), what);
  const int status = StatusOf(answers);
  if (status == ARES_ETIMEOUT)
    return Fail(ErrorCode::kTimeout, what + ": no name server answered in time", kHint);
  if (status != ARES_SUCCESS)
    return Fail(ErrorCode::kUnavailable, what + ": " + ::ares_strerror(status), kHint);
  return AddressesOf(answers, in_order);
}

}  // namespace railhead::http
