// How often NICs are asked, whoever asks for their page and however often.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "deviceplugin/services/nic_metrics/nic_page.h"
#include "tests/support/metrics/metrics_parser.h"

namespace railhead::testing {
namespace {

using namespace std::chrono_literals;

class CachedNicPageTest : public ::testing::Test {
 protected:
  // Each collection is told apart by the problems that it has.
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
