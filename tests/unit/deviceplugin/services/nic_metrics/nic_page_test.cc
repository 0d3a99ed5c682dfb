// The page of NICs, as a strict reader takes it.
#include "deviceplugin/services/nic_metrics/nic_page.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "deviceplugin/services/nic_metrics/cached_nic_page.h"
#include "deviceplugin/services/nic_metrics/nic_sample.h"
#include "deviceplugin/services/nic_metrics/priority_counters.h"
#include "tests/support/metrics/documented_metrics.h"
#include "tests/support/metrics/metrics_parser.h"

namespace railhead::testing {
namespace {

using namespace std::chrono_literals;

nic_metrics::NicSample Port() {
  nic_metrics::NicSample port;
  port.device = "0000:43:00.0";
  port.pf = "pf0";
  port.rail = "rail0";
  port.numa_node = 1;
  port.driver = "mlx5_core";
  port.traffic.emplace().rx_bytes = 5000;
  port.traffic->rx_dropped = 3;
  port.carrier = true;
  port.speed = 50'000'000'000;
  port.priorities = {{nic_metrics::PriorityCounter::kPauseFrames, false, 3, 7},
                     {nic_metrics::PriorityCounter::kPauseMicroseconds, true, 3, 1'500'000},
                     {nic_metrics::PriorityCounter::kPauseFrames, true, std::nullopt, 4}};
  return port;
}

nic_metrics::NicSample VfInPod() {
  nic_metrics::NicSample vf;
  vf.device = "0000:43:10.0";
  vf.pf = "pf0";
  vf.vf = 0;
  vf.rail = "rail0";
  vf.owner = nic_metrics::NicOwner{{"rails", "c1", "net1"}, "worker-3", "jobs", "net1", true};
  vf.traffic.emplace().tx_packets = 12;
  vf.by_pf.emplace().tx_bytes = 99;
  vf.rdma_device = "mlx5_4";
  vf.rdma_seen = true;
  vf.rdma_active = true;
  vf.rdma = {{"out_of_sequence", 17}, {"odd-name", 1}, {"odd.name", 2}};
  return vf;
}

nic_metrics::NicPageSources Sources() {
  nic_metrics::NicPageSources sources;
  sources.report.nics = {Port(), VfInPod()};
  sources.took = std::chrono::milliseconds(250);
  return sources;
}

using Labels = std::map<std::string, std::string>;
const Labels kPort = {{"device", "0000:43:00.0"}, {"pf", "pf0"}, {"rail", "rail0"}, {"numa_node", "1"}};
const Labels kVf = {{"device", "0000:43:10.0"}, {"pf", "pf0"},       {"vf", "0"},          {"rail", "rail0"},
                    {"namespace", "jobs"},      {"pod", "worker-3"}, {"interface", "net1"}};
Labels With(Labels labels, const Labels& more) {
  labels.insert(more.begin(), more.end());
  return labels;
}

TEST(NicPageTest, TellsOfPortsAndOfNicsInPods) {
  MetricsText page = ParseMetrics(NicPage(Sources(), ExpositionFormat::kText), false);
  EXPECT_EQ(page.Value("railhead_nic_info", With(kPort, {{"driver", "mlx5_core"}})), 1);
  EXPECT_EQ(page.Value("railhead_nic_carrier", kPort), 1);
  EXPECT_EQ(page.Value("railhead_nic_carrier", kVf), 0);
  EXPECT_EQ(page.Value("railhead_nic_speed_bytes", kPort), 5e10);
  EXPECT_EQ(page.Value("railhead_nic_receive_bytes_total", kPort), 5000);
  EXPECT_EQ(page.Value("railhead_nic_receive_drops_total", kPort), 3);
  EXPECT_EQ(page.Value("railhead_nic_transmit_packets_total", kVf), 12);
  EXPECT_EQ(page.Value("railhead_vf_transmit_bytes_total", kVf), 99);
  EXPECT_EQ(page.Find("railhead_vf_transmit_bytes_total", kPort), nullptr);
  const Labels received = {{"direction", "receive"}, {"priority", "3"}};
  EXPECT_EQ(page.Value("railhead_nic_pause_frames_total", With(kPort, received)), 7);
  EXPECT_EQ(page.Value("railhead_nic_pause_frames_total", With(kPort, {{"direction", "transmit"}})), 4);
  const Labels sent = {{"direction", "transmit"}, {"priority", "3"}};
  EXPECT_EQ(page.Value("railhead_nic_pause_seconds_total", With(kPort, sent)), 1.5);
  const Labels rdma = With(kVf, {{"rdma_device", "mlx5_4"}});
  EXPECT_EQ(page.Value("railhead_rdma_port_active", rdma), 1);
  EXPECT_EQ(page.Value("railhead_rdma_out_of_sequence_total", rdma), 17);
  EXPECT_EQ(page.Value("railhead_nic_collect_seconds"), 0.25);
  EXPECT_EQ(page.Value("railhead_nic_collect_problems"), 0);
  EXPECT_EQ(page.errors, std::vector<std::string>());
}

// A page that says the same twice is refused as a whole.
TEST(NicPageTest, TwoCountersThatShareANameAreOne) {
  MetricsText page = ParseMetrics(NicPage(Sources(), ExpositionFormat::kText), false);
  EXPECT_EQ(page.Value("railhead_rdma_odd_name_total", With(kVf, {{"rdma_device", "mlx5_4"}})), 1);
  EXPECT_EQ(page.errors, std::vector<std::string>());
}

TEST(NicPageTest, HealthAndDrift) {
  nic_metrics::NicPageSources sources = Sources();
  health::DeviceHealth unhealthy;
  unhealthy.id = "0000:43:00.0";
  unhealthy.healthy = false;
  unhealthy.reasons = {{health::HealthRule::kLink, unhealthy.id, "", "no carrier", {}},
                       {health::HealthRule::kAer, unhealthy.id, "a", "", {}},
                       {health::HealthRule::kAer, unhealthy.id, "b", "", {}}};
  sources.health = {unhealthy};
  sources.drifted = {{"rails", "c1", "net1"}};
  MetricsText page = ParseMetrics(NicPage(sources, ExpositionFormat::kText), false);
  EXPECT_EQ(page.Value("railhead_nic_healthy", kPort), 0);
  EXPECT_EQ(page.Value("railhead_nic_health_reason", With(kPort, {{"rule", "link"}})), 1);
  EXPECT_EQ(page.Value("railhead_nic_health_reason", With(kPort, {{"rule", "aer"}})), 1);
  EXPECT_EQ(page.Find("railhead_nic_healthy", kVf), nullptr) << "nothing is known of it";
  EXPECT_EQ(page.Value("railhead_nic_nccl_config_drifted", kVf), 1);
  sources.drifted.clear();
  page = ParseMetrics(NicPage(sources, ExpositionFormat::kText), false);
  EXPECT_EQ(page.Value("railhead_nic_nccl_config_drifted", kVf), 0);
}

TEST(NicPageTest, EveryMetricIsDocumentedAndEveryDocumentedOneIsThere) {
  nic_metrics::NicPageSources sources = Sources();
  for (nic_metrics::NicSample& nic : sources.report.nics) {
    for (auto* traffic : {&nic.traffic, &nic.by_pf}) {
      if (!*traffic) continue;
      (*traffic)->rx_broadcast = (*traffic)->rx_dropped = (*traffic)->tx_dropped = 0;
      if (traffic == &nic.traffic) (*traffic)->rx_errors = (*traffic)->tx_errors = 0;
    }
  }
  sources.report.nics[0].traffic->rx_broadcast.reset();
  sources.report.nics[1].traffic->rx_broadcast.reset();
  MetricsText page = ParseMetrics(NicPage(sources, ExpositionFormat::kText), false);
  EXPECT_EQ(page.errors, std::vector<std::string>());
  // The driver names the RDMA counters.
  ExpectDocumented(page, MetricsPageName::kNics, "railhead_rdma_");
}

// How often the page's requests read NICs, whatever clients request it and however often.

class CachedNicPageTest : public ::testing::Test {
 protected:
  // The number of problems identifies a collection.
  nic_metrics::NicPageSources Collect() {
    const int before = collecting_.fetch_add(1);
    EXPECT_EQ(before, 0) << "two collections at once";
    nic_metrics::NicPageSources sources;
    sources.report.problems.resize(static_cast<std::size_t>(++collections_));
    now_ += takes_;
    collecting_.fetch_sub(1);
    return sources;
  }
  // The number of the collection that a page is of.
  static int CollectionOf(const std::string& body, ExpositionFormat format) {
    auto page = ParseMetrics(body, format == ExpositionFormat::kOpenMetrics);
    EXPECT_EQ(page.errors, std::vector<std::string>()) << body;
    return static_cast<int>(page.Value("railhead_nic_collect_problems"));
  }

  std::chrono::milliseconds now_{1000};
  std::chrono::milliseconds takes_{0};
  std::atomic<int> collecting_{0};
  int collections_ = 0;
  nic_metrics::CachedNicPage page_{[this] { return Collect(); },
                                   [this] { return nic_metrics::CachedNicPage::Clock::time_point(now_); }};
};

// Random requests in both formats: no page is older than allowed, and collections are as far apart as that.
TEST_F(CachedNicPageTest, CollectsNoMoreOftenThanItsAgeAllows) {
  std::mt19937 random(20);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same choices in every run
  std::map<int, std::chrono::milliseconds> ended;
  for (int request = 0; request < 5000; ++request) {
    takes_ = std::chrono::milliseconds(random() % 20'000);
    const auto format = random() % 2 == 0 ? ExpositionFormat::kText : ExpositionFormat::kOpenMetrics;
    const int known = collections_;
    const auto asked = now_;
    const int collection = CollectionOf(page_.Get(format), format);
    ASSERT_EQ(collection, collections_) << "the page is of the last collection";
    if (collections_ != known) {
      if (known > 0) {
        ASSERT_GE(asked - ended[known], nic_metrics::CachedNicPage::kMaxAge);
      }
      ended[collections_] = now_;
    } else {
      ASSERT_LT(now_ - ended[collection], nic_metrics::CachedNicPage::kMaxAge);
    }
    now_ += std::chrono::milliseconds(random() % 500);
  }
  EXPECT_GT(collections_, 100);
}

TEST_F(CachedNicPageTest, ManyAtOnceCauseOneCollection) {
  std::vector<std::thread> clients;
  clients.reserve(8);
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([this] {
      for (int request = 0; request < 500; ++request) EXPECT_NE(page_.Get(ExpositionFormat::kText), "");
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(collections_, 1);
}

}  // namespace
}  // namespace railhead::testing
