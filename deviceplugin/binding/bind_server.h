// BindServer: answers the CNI plugin's requests for devices on a unix socket.
//
// One line each way (cni/state/bind_protocol.h), one connection after the other, each with a
// deadline. Only root may ask: the socket says who is there (SO_PEERCRED).
// Of two daemons the later one has the socket's path; the earlier one goes on for who is
// connected already.
// Ownership: owns its socket; the file stays, since to remove it could take a later daemon's.
// Threads: a thread of its own calls `answer`; Stop() from any. Errors: kIo when it cannot
// listen.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "cni/state/bind_protocol.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/unique_fd.h"

namespace railhead {

class BindServer {
 public:
  using Answer = std::function<Result<Bindings>(const BindRequest&)>;
  using Report = std::function<void(const BindRequest&, const Result<Bindings>&)>;

  static Result<std::unique_ptr<BindServer>> Start(const Root& root, Answer answer, Report report);
  BindServer(const BindServer&) = delete;
  BindServer& operator=(const BindServer&) = delete;
  ~BindServer();

  void Stop();

 private:
  BindServer(std::string path, UniqueFd listener, UniqueFd wake, Answer answer, Report report);
  void Loop();
  void Serve(int connection) const;

  const std::string path_;
  const UniqueFd listener_;
  const UniqueFd wake_;
  const Answer answer_;
  const Report report_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead
