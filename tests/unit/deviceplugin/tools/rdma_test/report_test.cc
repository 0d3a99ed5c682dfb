// Statistics, and what they look like.
#include "deviceplugin/tools/rdma_test/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deviceplugin/tools/rdma_test/outcome.h"
#include "netns/json/record_io.h"
#include "netns/json/record_table.h"
#include "tests/unit/deviceplugin/tools/rdma_test/support.h"

namespace railhead::rdma_test {
namespace {

std::vector<std::chrono::nanoseconds> Trips(int count) {
  std::vector<std::chrono::nanoseconds> trips;
  // Backwards: the order must not matter.
  for (int i = count; i > 0; --i) trips.emplace_back(i * 2000);
  return trips;
}

TEST(LatencyTest, HalfOfTheRoundTripByNearestRank) {
  auto trips = Trips(100);
  trips.insert(trips.begin(), 11, std::chrono::hours(1));  // a tenth: the warm-up
  const Latency latency = LatencyOf(trips);
  EXPECT_EQ(latency.samples, 100);
  EXPECT_EQ(latency.min_us, 1);
  EXPECT_EQ(latency.median_us, 50);
  EXPECT_EQ(latency.p99_us, 99);
  EXPECT_EQ(latency.max_us, 100);
}

TEST(LatencyTest, AHundredAtMostAreLeftOut) {
  EXPECT_EQ(LatencyOf(Trips(5000)).samples, 4900);
}

TEST(LatencyTest, FewOrNone) {
  EXPECT_EQ(LatencyOf({}).samples, 0);
  const Latency one = LatencyOf(Trips(1));
  EXPECT_EQ(one.samples, 1);
  EXPECT_EQ(one.p99_us, 1);
}

TEST(BandwidthTest, GigabitsOfPayload) {
  EXPECT_DOUBLE_EQ((Bandwidth{125'000'000, 0.5}).GigabitsPerSecond(), 2);
  EXPECT_EQ((Bandwidth{1, 0}).GigabitsPerSecond(), 0);
}

TestRecord Record(const std::string& from, const std::string& to, int host_ends, std::uint64_t megabytes,
                  const std::string& rail = "rail0") {
  return {from, to, rail, host_ends, SomeOutcome(megabytes * 1'000'000)};
}

TestRecord Failed(const std::string& from, const std::string& to, int host_ends) {
  return {from, to, "rail0", host_ends,
          Fail(ErrorCode::kUnavailable, to + ": port 1 of RDMA device mlx5_9 is in state down", "ip link")};
}

using Parts = std::vector<std::optional<double>>;

TEST(PartsTest, OfTheBestOfTheHost) {
  EXPECT_EQ(PartsOfHost({Record("a", "b", 0, 125), Record("a", "host", 1, 250), Record("b", "host", 1, 500)}),
            (Parts{0.25, 0.5, std::nullopt}));
}

TEST(PartsTest, TwoDevicesOfTheHostAreNearerToBareMetal) {
  EXPECT_EQ(PartsOfHost(
                {Record("host@a", "host@b", 2, 500), Record("a", "host", 1, 625), Record("a", "b", 0, 125)}),
            (Parts{std::nullopt, 1.25, 0.25}));
}

TEST(PartsTest, RailByRail) {
  EXPECT_EQ(PartsOfHost({Record("a", "b", 0, 125, "rail0"), Record("a", "host", 1, 250, "rail0"),
                         Record("a", "b", 0, 125, "rail1"), Record("a", "host", 1, 500, "rail1")}),
            (Parts{0.5, std::nullopt, 0.25, std::nullopt}));
}

TEST(PartsTest, WithoutAHostOrWithOneThatFailed) {
  EXPECT_EQ(PartsOfHost({Record("a", "b", 0, 50), Failed("a", "host", 1)}),
            (Parts{std::nullopt, std::nullopt}));
}

TEST(ReportTest, ATable) {
  const auto rows = TableOf(
      ReportOf({Record("a", "b", 0, 50), Record("a", "host", 1, 12'500), Failed("b", "host", 1)}, {}, false)
          .tests);
  ASSERT_EQ(rows.size(), 4);
  EXPECT_EQ(rows[1], (std::vector<std::string>{"a", "b", "rail0", "mlx5_4[3] mlx5_9[5]", "4096", "0.4000",
                                               "0.4 %", "1.50 / 2.25", "2.00 / 3.00", "-"}));
  EXPECT_EQ(rows[2][5], "100.0");
  EXPECT_EQ(rows[2][6], "baseline");
  EXPECT_EQ(rows[3].back(), "host: port 1 of RDMA device mlx5_9 is in state down");
}

TEST(ReportTest, Json) {
  TestParameters parameters;
  parameters.size = 4096;
  const nlohmann::json json = nlohmann::json::parse(record::Dump(ToJson(ReportOf(
      {Record("a", "host", 1, 125), Record("a", "b", 0, 125), Failed("b", "host", 1)}, parameters, true))));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["size"], 4096);
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["tests"][1]["partOfHost"], 1.0);
  EXPECT_FALSE(json["tests"][0].contains("partOfHost"));
  EXPECT_EQ(json["tests"][0]["write"],
            (nlohmann::json{{"gbitPerSecond", 1.0}, {"bytes", 125'000'000}, {"seconds", 1.0}}));
  EXPECT_EQ(json["tests"][0]["toEnd"],
            (nlohmann::json{{"device", "mlx5_9"}, {"gidIndex", 5}, {"gid", "::ffff:10.0.0.2"}}));
  EXPECT_EQ(json["tests"][0]["sendLatency"]["p99Us"], 3.0);
  EXPECT_EQ(json["tests"][2]["error"]["code"], "unavailable");
  EXPECT_EQ(json["tests"][2]["error"]["hint"], "ip link");
  EXPECT_FALSE(json["tests"][2].contains("write"));
}

}  // namespace
}  // namespace railhead::rdma_test
