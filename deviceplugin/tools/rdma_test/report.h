// The results of a run of tests, for people and for programs.
//
// Each test shows its bandwidth as a fraction of the host's best on that rail in the same run. The host's
// best is between two of its own devices. Without such a test, it is between one of them and a pod.
// Threads: pure functions. Units: bandwidth in Gbit/s of payload, latency in microseconds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/rdma_test/outcome.h"
#include "deviceplugin/tools/rdma_test/session.h"
#include "netns/json/record.h"

namespace railhead::rdma_test {

struct TestRecord {
  std::string from;
  std::string to;
  std::string rail;
  int host_ends = 0;  // how many of the two are this namespace's
  Result<Outcome> outcome;
};

// Per record: its fraction of the baseline. nullopt: it failed, is the baseline itself, or has none.
std::vector<std::optional<double>> PartsOfHost(const std::vector<TestRecord>& records);

struct ReportedTest;

// Cells of tables.
std::string DevicesOf(const Outcome& outcome);
std::string SpeedOf(const Outcome& outcome);
std::string PartOf(const ReportedTest& test);
// "1.50 / 2.25": median and 99th percentile.
std::string TimesOf(const Latency& latency);

struct ReportedTest {
  std::string from;
  std::string to;
  std::string rail;
  std::optional<Error> error;
  std::optional<Outcome> outcome;  // without an error
  std::optional<double> part_of_host;
  bool is_baseline = false;

  static void List(auto& f) {
    f("from", &ReportedTest::from, {.column = "FROM"});
    f("to", &ReportedTest::to, {.column = "TO"});
    f("rail", &ReportedTest::rail, {.column = "RAIL"});
    f("error", &ReportedTest::error);
    f.Part(&ReportedTest::outcome, [](auto& part) {
      part.Column("DEVICES", &DevicesOf);
      part("fromEnd", &Outcome::from);
      part("toEnd", &Outcome::to);
      part("mtu", &Outcome::mtu, {.column = "MTU"});
      part("trafficClass", &Outcome::traffic_class, {.column = "TRAFFIC CLASS", .wide = kWide});
      part("write", &Outcome::write);
      part.Column("WRITE Gbit/s", &SpeedOf);
    });
    f("partOfHost", &ReportedTest::part_of_host);
    f.Column("OF HOST", &PartOf);
    f.Part(&ReportedTest::outcome, [](auto& part) {
      part("writeLatency", &Outcome::write_latency);
      part("sendLatency", &Outcome::send_latency);
      part.Column("WRITE us p50 / p99", [](const Outcome& it) { return TimesOf(it.write_latency); });
      part.Column("SEND us p50 / p99", [](const Outcome& it) { return TimesOf(it.send_latency); });
    });
    f.Part(&ReportedTest::error, [](auto& part) { part.Column("FAILED", &Error::message); });
  }
};

struct Report {
  std::uint32_t size = 0;
  int depth = 0;
  int seconds = 0;  // of each run
  bool interrupted = false;
  std::vector<ReportedTest> tests;

  static void List(auto& f) {
    f.Version(1);
    f("size", &Report::size);
    f("depth", &Report::depth);
    f("secondsPerRun", &Report::seconds);
    f("interrupted", &Report::interrupted);
    f("tests", &Report::tests);
  }
};

Report ReportOf(const std::vector<TestRecord>& records, const TestParameters& parameters, bool interrupted);

}  // namespace railhead::rdma_test
