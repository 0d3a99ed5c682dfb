// One planned test from start to end: its processes, what they say, signals and the deadline.
//
// Both ends on this node: two processes joined by a socket pair. The other one on another node: one
// process with a TCP connection, which is made before that enters its namespace, so that the
// exchange goes over the cluster network.
// Threads: the calling process has one. Errors: of the end that failed first, with its name before
// the message; kTimeout; kBusy with kInterrupted as the message when a signal came.
#pragma once

#include <memory>
#include <string>

#include "deviceplugin/support/http/http_server.h"
#include "deviceplugin/tools/rdma_test/end_process.h"
#include "deviceplugin/tools/rdma_test/session.h"

namespace railhead::rdmatest {

inline constexpr const char* kInterrupted = "interrupted";

Result<Outcome> RunTest(const TestEnd& from, const TestEnd& to, const PlannedTest& test,
                        const TestParameters& parameters, const Interrupts& interrupts);

struct ListenOptions {
  HttpAddress address;
  PlanOptions plan;
  std::chrono::seconds wait{60};                     // without a connection: the end of it
  std::shared_ptr<const SharedKeys> keys = nullptr;  // nullptr: whoever connects is answered
};

struct Served {
  int tests = 0;
  int failed = 0;
};

// Answers one test after the other, that first whose end has said first what it wants; those who have said
// nothing yet wait together (lobby.h). `tell` gets the outcome of each, and of those that never said it.
Result<Served> Listen(const TestEnd& end, const ListenOptions& options, const Interrupts& interrupts,
                      const std::function<void(const Result<void>& test)>& tell);

}  // namespace railhead::rdmatest
