// BindServer: answers the CNI plugin's requests for devices on a unix socket.
//
// One line each way (cni/state/bind_protocol.h). Each connection has a deadline: a silent one delays no
// other. Each request is answered on a thread of its own: an answer can wait for kubelet, and a node starts
// all its pods at once. Only root may send requests: the socket reports the peer's user (SO_PEERCRED). Of two
// daemons (an update) the later one has the socket's path. The earlier one watches the path. It reclaims it
// when no process listens there, or the socket has gone. Ownership: owns its socket; the file stays, since it
// may be a later daemon's. Threads: `answer` and `report` are called from several threads at once; Stop()
// from any. Errors: kIo when it cannot listen.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cni/state/bind_protocol.h"
#include "deviceplugin/services/kubelet/pod_resources.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/unique_fd.h"

namespace railhead::late_binding {

class BindServer {
 public:
  using Answer = std::function<Result<Bindings>(const BindRequest&)>;
  using Report = std::function<void(const BindRequest&, const Result<Bindings>&)>;

  static Result<std::unique_ptr<BindServer>> Start(const Root& root, Answer answer, Report report);
  BindServer(const BindServer&) = delete;
  BindServer& operator=(const BindServer&) = delete;
  ~BindServer();

  void Stop();
  // Whether the threads have ended: all requests have their answer.
  bool AwaitEnd(std::chrono::milliseconds limit) { return end_.wait_for(limit) == std::future_status::ready; }

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

  BindServer(Root root, Listener listener, UniqueFd wake, UniqueFd watch, Answer answer, Report report);
  static Result<Listener> Listen(const Root& root);
  void Loop();
  void Wake() const;
  [[nodiscard]] bool HasPath() const;
  void ReclaimPath();
  [[nodiscard]] bool Accept(std::vector<Peer>* peers) const;
  [[nodiscard]] bool HasFinished(Peer* peer);
  void Reap();
  void Serve(int connection, const std::string& line) const;
  void ServeAside(UniqueFd connection, const std::string& line);

  const Root root_;
  const std::string path_;
  Listener listener_;
  const UniqueFd wake_;
  const UniqueFd watch_;  // of the path's directory
  const Answer answer_;
  const Report report_;
  std::atomic<bool> stopping_{false};
  std::promise<void> ended_;
  const std::future<void> end_ = ended_.get_future();
  std::list<Served> served_;  // the thread's own
  std::thread thread_;        // last: it uses all of the others
};

// SharedAnswer: one call to kubelet for all threads that wait for the same answer.
//
// A caller gets the answer of a call that began after its own Get(): a running one may not know its pod yet.
// So a burst of N costs two calls one after the other, not N. Threads: thread-safe; one of the waiting
// threads calls the source, one call at a time. Errors: those of the source.

class SharedAnswer {
 public:
  using Answer = Result<std::vector<kubelet::AllocatedDevices>>;
  using Source = std::function<Answer()>;

  explicit SharedAnswer(Source source) : source_(std::move(source)) {}

  // false: it has no source.
  explicit operator bool() const { return source_ != nullptr; }

  Answer Get() {
    std::unique_lock lock(mutex_);
    const std::uint64_t wanted = begun_ + 1;
    while (ended_ < wanted) {
      if (begun_ != ended_) {
        changed_.wait(lock);
        continue;
      }
      ++begun_;
      lock.unlock();
      Answer answer = source_();
      lock.lock();
      latest_ = std::move(answer);
      ended_ = begun_;
      changed_.notify_all();
    }
    return latest_;
  }

 private:
  const Source source_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  Answer latest_;
};

}  // namespace railhead::late_binding
