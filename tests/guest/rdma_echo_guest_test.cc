// RDMA of the probe endpoints on the real kernel: whom it answers, and when it reports that it is lost.
#include <gtest/gtest.h>

#include <atomic>

#include "deviceplugin/services/reachability/rdma_echo.h"
#include "deviceplugin/services/reachability/send_probes.h"
#include "tests/support/eventually.h"
#include "tests/support/netns/guest_fixture.h"
#include "tests/support/netns/soft_roce_pair.h"

namespace railhead::testing {
namespace {

using std::chrono::seconds;

class RdmaEchoTest : public ::testing::Test {
 protected:
  RdmaEchoTest() { here_->SetPeers({there_->own().address}); }

  std::unique_ptr<reachability::RdmaEcho> Start(Datagrams datagrams) {
    return Must(reachability::RdmaEcho::Start(std::move(datagrams), [this] { ++lost_; }));
  }
  // One round of probes from rxe_here.
  reachability::RdmaEcho::Count Probe(seconds limit) {
    here_->SendProbes(++session_, there_->own());
    here_->Await(reachability::RdmaEcho::Clock::now() + limit);
    return here_->TakeCounts()[session_];
  }
  bool IsAnswered() { return Probe(seconds(1)).answered == reachability::RdmaEcho::kProbes; }

  std::atomic<int> lost_ = 0;
  std::uint64_t session_ = 0;
  SoftRocePair pair_;
  std::unique_ptr<reachability::RdmaEcho> here_ = Start(pair_.OpenHere());
  std::unique_ptr<reachability::RdmaEcho> there_ = Start(pair_.OpenThere());
};

TEST_F(RdmaEchoTest, AnswersPeersAlone) {
  EXPECT_EQ(Probe(seconds(1)).answered, 0U) << "it does not know of us yet";
  there_->SetPeers({here_->own().address});
  EXPECT_TRUE(Eventually([&] { return IsAnswered(); }));
}

// A former peer may just have learned the queue pair. Without answers it would take this node for unhealthy.
TEST_F(RdmaEchoTest, AnswersAFormerPeerForAWhile) {
  // Repeated, since this machine may be too slow to probe within that time.
  EXPECT_TRUE(Eventually([&] {
    there_->SetPeers({here_->own().address});
    there_->SetPeers({});
    return IsAnswered();
  }));
  EXPECT_TRUE(Eventually([&] { return Probe(seconds(1)).answered == 0; })) << "it goes on";
  there_->SetPeers({here_->own().address});
  EXPECT_TRUE(Eventually([&] { return IsAnswered(); })) << "it is one again";
}

TEST_F(RdmaEchoTest, TellsOnceThatItIsLost) {
  EXPECT_FALSE(here_->IsLost());
  LinkChange down;
  down.up = false;
  Must(pair_.route().ChangeLink(pair_.link(), down));
  EXPECT_TRUE(Eventually([&] { return here_->IsLost() && lost_ > 0; }));
  EXPECT_EQ(Probe(seconds(1)).sent, 0U);
  here_.reset();
  EXPECT_LE(lost_, 2) << "at most once for each end of the pair";
}

}  // namespace
}  // namespace railhead::testing
