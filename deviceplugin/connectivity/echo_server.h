// EchoServer: the thread that answers other nodes' probes, at all stations of this node.
//
// It answers whoever has an address of the rail's subnet, with no more bytes than it got, kMostAnswers in a
// second at most; it keeps who was heard when, of kMostSenders per rail.
// Ownership: owns the sockets that it is given. Threads: all from any. Errors: kIo without descriptors.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "deviceplugin/connectivity/answer_limit.h"
#include "netns/base/ip_address.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

class EchoServer {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kMostAnswers = 20'000;
  static constexpr std::size_t kMostSenders = 8'192;

  static Result<std::unique_ptr<EchoServer>> Start();
  ~EchoServer();
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  // In the place of what the rail had.
  void Serve(const std::string& rail, const IpPrefix& subnet, UniqueFd socket);
  // What its answers tell `peers`, who alone are answered there; 0: none. Of a rail that is served.
  void TellQueuePair(const std::string& rail, std::uint32_t number, std::set<IpAddress> peers);
  // Its socket is closed when this returns: it would keep its namespace.
  void Drop(const std::string& rail);
  [[nodiscard]] std::optional<Clock::time_point> Heard(const std::string& rail,
                                                       const IpAddress& sender) const;

 private:
  struct Sender {
    Clock::time_point heard;
    std::map<std::uint64_t, std::uint32_t> sessions;  // how many probes of each
  };
  struct Service {
    UniqueFd socket;
    IpPrefix subnet;
    std::map<IpAddress, Sender> senders;
    std::uint32_t queue_pair = 0;
    std::set<IpAddress> told;  // queue_pair
  };

  explicit EchoServer(UniqueFd wake);
  void Loop();
  void Answer(Service& service);
  static std::uint32_t Count(Service& service, const IpAddress& sender, std::uint64_t session);
  void Wake() const;

  const UniqueFd wake_;
  mutable std::mutex mutex_;
  std::map<std::string, Service> services_;
  AnswerLimit limit_{kMostAnswers};
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead
