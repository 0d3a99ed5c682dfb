// What a run of tests has shown, for people and for programs.
//
// Beside each test stands its bandwidth as a part of the best that the host itself has reached on
// that rail in the same run: between two of its own devices, or else between one of them and a pod.
// Threads: pure functions. Units: bandwidth in Gbit/s of payload, latency in microseconds.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/rdma_test/session.h"

namespace railhead::rdma_test {

struct TestRecord {
  std::string from;
  std::string to;
  std::string rail;
  int host_ends = 0;  // how many of the two are this namespace's
  Result<Outcome> outcome;
};

// Per record: its part of the baseline; nullopt: it failed, is the baseline, or there is none.
std::vector<std::optional<double>> PartsOfHost(const std::vector<TestRecord>& records);

// The first row is the heading.
std::vector<std::vector<std::string>> ReportRows(const std::vector<TestRecord>& records);
nlohmann::json ReportAsJson(const std::vector<TestRecord>& records, const TestParameters& parameters,
                            bool interrupted);

}  // namespace railhead::rdma_test
