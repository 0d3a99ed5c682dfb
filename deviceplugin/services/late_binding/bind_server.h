// BindServer: answers the CNI plugin's requests for devices on a unix socket.
//
// One line each way (cni/state/bind_protocol.h). Each connection has a deadline: a silent one delays no
// other. Each request is answered on a thread of its own: an answer can wait for kubelet, and a node starts
// all its pods at once. Only root may send requests: the socket reports the peer's user (SO_PEERCRED). Of two
// daemons (an update) the later one has the socket's path. The earlier one watches the path. It reclaims it
// when no process listens there, or the socket has gone. Ownership: owns its socket; the file stays, since it
// may be a later daemon's. Borrows the requests. Threads: Run() on one. It calls BindRequests from several
// threads at once, and waits for all of them. Errors: kIo when it cannot listen.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "deviceplugin/services/late_binding/bind_requests.h"
#include "deviceplugin/support/service/worker.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/unique_fd.h"

namespace railhead::late_binding {

class BindServer {
 public:
  // Listens. Requests wait until Run().
  static Result<std::unique_ptr<BindServer>> Listen(const Root& root, BindRequests& requests);
  BindServer(const BindServer&) = delete;
  BindServer& operator=(const BindServer&) = delete;

  // Serves until `worker` requests the stop, and all requests have their answer.
  void Run(Worker& worker);

 private:
  // A listening socket, and the identity of its file.
  struct Listener {
    UniqueFd fd;
    std::pair<dev_t, ino_t> file;
  };

  // A connection whose request is not complete.
  struct Peer {
    UniqueFd connection;
    std::string received;
    std::chrono::steady_clock::time_point until;
  };

  // A complete request that is being answered.
  struct Served {
    std::atomic<bool> done{false};
    std::thread thread;
  };

  BindServer(Root root, Listener listener, UniqueFd watch, BindRequests& requests);
  static Result<Listener> OpenListener(const Root& root);
  void Step(Worker& worker);
  [[nodiscard]] bool HasPath() const;
  void ReclaimPath();
  [[nodiscard]] bool Accept();
  [[nodiscard]] bool HasFinished(Peer* peer, Worker& worker);
  void Reap();
  void Serve(int connection, const std::string& line) const;
  void ServeAside(UniqueFd connection, const std::string& line, Worker& worker);

  const Root root_;
  const std::string path_;
  Listener listener_;
  const UniqueFd watch_;  // of the path's directory
  BindRequests& requests_;
  std::vector<Peer> peers_;
  std::list<Served> served_;
  bool pausing_ = false;  // no descriptor is free for the next connection
};

}  // namespace railhead::late_binding
