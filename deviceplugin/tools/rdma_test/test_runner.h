// One planned test from start to end: its processes, their results, signals and the deadline.
//
// If both ends are on this node, two processes are joined by a socket pair. If the other end is on another
// node, one process has a TCP connection. It is made before the process enters its namespace, so that the
// exchange uses the cluster network.
// Threads: the calling process has one. Errors: of the end that failed first, with its name before
// the message; kTimeout; kBusy with kInterrupted as the message when a signal came.
#pragma once

#include <functional>
#include <memory>

#include "deviceplugin/support/http/http_address.h"
#include "deviceplugin/tools/rdma_test/interrupts.h"
#include "deviceplugin/tools/rdma_test/outcome.h"
#include "deviceplugin/tools/rdma_test/session.h"
#include "netns/base/result.h"

namespace railhead::rdma_test {

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
