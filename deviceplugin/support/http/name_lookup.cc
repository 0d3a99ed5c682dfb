#include "deviceplugin/support/http/name_lookup.h"

#include <netdb.h>

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace railhead {
namespace {

struct Answer {
  int status = 0;
  std::vector<SocketAddress> addresses;
};

struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  Answer answer;
};

Answer Ask(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  Answer answer;
  answer.status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  if (answer.status != 0) return answer;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    SocketAddress address;
    if (one->ai_addrlen > sizeof(address.address)) continue;
    std::memcpy(&address.address, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
    answer.addresses.push_back(address);
  }
  return answer;
}

}  // namespace

Result<std::vector<SocketAddress>> LookUp(const std::string& host, const std::string& port,
                                          Deadline deadline) {
  Answer numeric = Ask(host, port, AI_NUMERICHOST);
  if (numeric.status == 0) return std::move(numeric.addresses);
  auto shared = std::make_shared<Shared>();
  try {
    std::thread([shared, host, port] {
      Answer answer = Ask(host, port, AI_ADDRCONFIG);
      const std::lock_guard lock(shared->mutex);
      shared->answer = std::move(answer);
      shared->done = true;
      shared->changed.notify_all();
    }).detach();
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kUnavailable, "starting a thread to look up '" + host + "': " + error.what());
  }
  std::unique_lock lock(shared->mutex);
  if (!shared->changed.wait_until(lock, deadline, [&] { return shared->done; })) {
    return Fail(ErrorCode::kTimeout, "looking up '" + host + "': no name server answered in time",
                "see the node's /etc/resolv.conf, or name the host by its address");
  }
  if (shared->answer.status != 0) {
    return Fail(ErrorCode::kUnavailable,
                "looking up '" + host + "': " + ::gai_strerror(shared->answer.status),
                "see the node's /etc/resolv.conf, or name the host by its address");
  }
  return std::move(shared->answer.addresses);
}

}  // namespace railhead
