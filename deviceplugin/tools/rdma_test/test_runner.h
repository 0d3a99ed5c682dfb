// One planned test from start to end: its processes, their results, signals and the deadline.
//
// If both ends are on this node, two processes are joined by a socket pair. If the other end is on another
// node, one process has a TCP connection. It is made before the process enters its namespace, so that the
// exchange uses the cluster network.
// Threads: the calling process has one. Errors: of the end that failed first, with its name before
// the message; kTimeout; kBusy with kInterrupted as the message when a signal came.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "deviceplugin/support/http/http_address.h"
#include "deviceplugin/tools/rdma_test/session.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"

namespace railhead::rdma_test {

// A process for one end of a test, in that end's network namespace; and signals that end tests.
//
// The process has a /sys of its namespace, ignores the terminal's signals (its parent ends it) and dies with
// its parent. The object's destructor kills and reaps it.
// Ownership: moves. Threads: the calling process has one thread only.

class EndProcess {
 public:
  // `ns`: its namespace; nullptr: this one. `work`'s result is the process's.
  static Result<EndProcess> Start(const NetNs* ns, const std::function<Result<std::string>()>& work);

  EndProcess(EndProcess&& other) noexcept;
  EndProcess& operator=(EndProcess&&) = delete;
  EndProcess(const EndProcess&) = delete;
  EndProcess& operator=(const EndProcess&) = delete;
  ~EndProcess();

  // Readable when Read() has something to read.
  [[nodiscard]] int fd() const { return pipe_.get(); }
  // Reads without waiting. Returns the process's result once it has ended. kInternal: it has ended without
  // one.
  std::optional<Result<std::string>> Read();

 private:
  EndProcess(pid_t pid, UniqueFd pipe) : pid_(pid), pipe_(std::move(pipe)) {}
  void Reap();

  pid_t pid_ = -1;
  UniqueFd pipe_;
  std::string said_;
};

// SIGINT, SIGTERM and SIGHUP, held back while the object lives and read from a descriptor instead.
class Interrupts {
 public:
  static Result<Interrupts> Catch();
  Interrupts(Interrupts&& other) noexcept;
  Interrupts& operator=(Interrupts&&) = delete;
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  // Readable from the first such signal on.
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit Interrupts(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

inline constexpr const char* kInterrupted = "interrupted";

Result<Outcome> RunTest(const TestEnd& from, const TestEnd& to, const PlannedTest& test,
                        const TestParameters& parameters, const Interrupts& interrupts);

struct ListenOptions {
  http::HttpAddress address;
  PlanOptions plan;
  std::chrono::seconds wait{60};                     // Listen() ends after this time without a connection
  std::shared_ptr<const SharedKeys> keys = nullptr;  // nullptr: answers every peer
};

struct Served {
  int tests = 0;
  int failed = 0;
};

// Answers tests one after the other, in the order in which their requests are complete. Connections without a
// complete request wait together. `tell` gets the outcome of each test, and of each connection without a
// request.
Result<Served> Listen(const TestEnd& end, const ListenOptions& options, const Interrupts& interrupts,
                      const std::function<void(const Result<void>& test)>& tell);

}  // namespace railhead::rdma_test
