// How the rails are probed: the object `reachability` of fabric.json.
// Threads: plain values, pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead::reachability {

struct ReachabilitySettings {
  bool enabled = false;               // absent from the fabric: nothing is sent
  std::chrono::seconds interval{10};  // between rounds; each is up to a quarter earlier or later
  int peers = 4;                      // peers per round, besides the faulty ones
  int paths = 8;                      // source ports
  std::uint16_t port = 4795;          // UDP, of the probe endpoints
  bool rdma = false;                  // also probe by RDMA
  std::chrono::seconds pods{60};      // between probes from inside a pod; 0: none

  bool operator==(const ReachabilitySettings&) const = default;
};

}  // namespace railhead::reachability

template <>
struct railhead::Shape<railhead::reachability::ReachabilitySettings> {
  using T = reachability::ReachabilitySettings;
  static void Switch(T& settings, bool on) { settings.enabled = on; }
  static void List(auto& f) {
    f("intervalSeconds", &T::interval, {.min = 1, .max = 3600});
    f("peers", &T::peers, {.min = 0, .max = 64});
    f("paths", &T::paths, {.min = 1, .max = 64});
    f("port", &T::port, {.min = 1});
    f("rdma", &T::rdma);
    f("podSeconds", &T::pods, {.min = 0, .max = 3600});
  }
  static void Complete(T& settings) { settings.enabled = true; }
};

namespace railhead::reachability {

// Of Fabric::reachability; `what` names the fabric's file in errors. `all` gets all errors, the result has
// the first.
Result<ReachabilitySettings> ParseReachabilitySettings(const std::string& text, const std::string& what,
                                                       std::vector<Error>* all = nullptr);

}  // namespace railhead::reachability
