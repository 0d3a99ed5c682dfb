// Alias, queue length, flags and alternative names of links on the real kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

using Names = std::vector<std::string>;

class LinkSettingsTest : public ::testing::Test {
 protected:
  [[nodiscard]] Link Get() const { return GetLink(*host_route_, index_); }
  NetNs host_ = MakeNetns();
  NetNs pod_ = MakeNetns();
  std::unique_ptr<RouteApi> host_route_ = OpenRoute(host_);
  std::unique_ptr<RouteApi> pod_route_ = OpenRoute(pod_);
  const int index_ = AddVeth(host_, "nic0", host_, "far0");
};

TEST_F(LinkSettingsTest, Alias) {
  LinkChange change;
  change.alias = "rail0 of team a";
  Must(host_route_->ChangeLink(index_, change));
  EXPECT_EQ(Get().alias, "rail0 of team a");
  change.alias = "";
  Must(host_route_->ChangeLink(index_, change));
  EXPECT_EQ(Get().alias, "");
  change.alias = std::string(300, 'x');
  EXPECT_FALSE(host_route_->ChangeLink(index_, change));
}

TEST_F(LinkSettingsTest, QueueLength) {
  const int before = Get().tx_queue_len;
  EXPECT_GT(before, 0);
  LinkChange change;
  change.tx_queue_len = before + 7;
  Must(host_route_->ChangeLink(index_, change));
  EXPECT_EQ(Get().tx_queue_len, before + 7);
}

// One flag is changed and no other: each message names the flags it means.
TEST_F(LinkSettingsTest, FlagsOneByOne) {
  LinkChange up;
  up.up = true;
  LinkChange promiscuous;
  promiscuous.promiscuous = true;
  LinkChange all_multicast;
  all_multicast.all_multicast = true;
  EXPECT_FALSE(Get().promiscuous);
  EXPECT_FALSE(Get().all_multicast);
  Must(host_route_->ChangeLink(index_, promiscuous));
  EXPECT_TRUE(Get().promiscuous && !Get().all_multicast && !Get().up);
  Must(host_route_->ChangeLink(index_, up));
  EXPECT_TRUE(Get().promiscuous && !Get().all_multicast && Get().up);
  Must(host_route_->ChangeLink(index_, all_multicast));
  EXPECT_TRUE(Get().promiscuous && Get().all_multicast && Get().up);
  promiscuous.promiscuous = false;
  Must(host_route_->ChangeLink(index_, promiscuous));
  EXPECT_TRUE(!Get().promiscuous && Get().all_multicast && Get().up);
  all_multicast.all_multicast = false;
  up.up = false;
  all_multicast.up = false;
  Must(host_route_->ChangeLink(index_, all_multicast));
  EXPECT_TRUE(!Get().promiscuous && !Get().all_multicast && !Get().up);
}

TEST_F(LinkSettingsTest, SettingsOutliveAMove) {
  LinkChange change;
  change.alias = "of the host";
  change.tx_queue_len = 77;
  change.promiscuous = true;
  Must(host_route_->ChangeLink(index_, change));
  Must(host_route_->AddAltName(index_, "a-name-longer-than-any-first-one"));
  Must(host_route_->MoveLink(index_, pod_, "net1", {}));
  const Link moved = GetLink(*pod_route_, "net1");
  EXPECT_EQ(moved.alias, "of the host");
  EXPECT_EQ(moved.tx_queue_len, 77);
  EXPECT_TRUE(moved.promiscuous);
  EXPECT_EQ(moved.alt_names, Names{"a-name-longer-than-any-first-one"});
  EXPECT_EQ(GetLink(*pod_route_, "a-name-longer-than-any-first-one"), moved);
  EXPECT_EQ(Must(host_route_->FindLink("a-name-longer-than-any-first-one")), std::nullopt);
}

TEST_F(LinkSettingsTest, AlternativeNamesComeAndGo) {
  EXPECT_EQ(Get().alt_names, Names{});
  Must(host_route_->AddAltName(index_, "rail0"));
  Must(host_route_->AddAltName(index_, "enp67s0f0v3-of-the-first-rail"));
  Names names = Get().alt_names;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (Names{"enp67s0f0v3-of-the-first-rail", "rail0"}));
  EXPECT_EQ(GetLink(*host_route_, "rail0"), Get());
  const auto links = Must(host_route_->ListLinks());
  EXPECT_NE(std::find(links.begin(), links.end(), Get()), links.end()) << "lists show them too";
  EXPECT_TRUE(Must(host_route_->DeleteAltName(index_, "rail0")));
  EXPECT_FALSE(Must(host_route_->DeleteAltName(index_, "rail0")));
  EXPECT_EQ(Get().alt_names, Names{"enp67s0f0v3-of-the-first-rail"});
}

TEST_F(LinkSettingsTest, NamesAreTakenOnlyOnce) {
  Must(host_route_->AddAltName(index_, "rail0"));
  const int other = GetLink(*host_route_, "far0").index;
  const auto taken = host_route_->AddAltName(other, "rail0");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kExists);
  EXPECT_NE(taken.error().hint.find("rail0"), std::string::npos);
  EXPECT_EQ(host_route_->AddAltName(other, "nic0").error().code, ErrorCode::kExists) << "a first name";
  LinkChange rename;
  rename.name = "rail0";
  EXPECT_EQ(host_route_->ChangeLink(index_, rename).error().code, ErrorCode::kExists)
      << "also where it is the link's own";
  EXPECT_FALSE(Must(host_route_->DeleteAltName(other, "rail0"))) << "another link's";
  EXPECT_FALSE(Must(host_route_->DeleteAltName(index_, "nic0"))) << "its first name";
  EXPECT_EQ(Get().alt_names, Names{"rail0"});
  EXPECT_EQ(host_route_->AddAltName(4242, "rail1").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(Must(host_route_->DeleteAltName(4242, "rail0")));
}

// Since the change "net: check for altname conflicts when changing netdev's netns" of
// Linux 6.6, which older stable series have too.
TEST_F(LinkSettingsTest, MoveIsRefusedWholeWhereAnAlternativeNameIsTaken) {
  Must(host_route_->AddAltName(index_, "rail0"));
  const int there = AddVeth(pod_, "eth0", pod_, "eth1");
  Must(pod_route_->AddAltName(there, "rail0"));
  EXPECT_EQ(host_route_->MoveLink(index_, pod_, "net1", {}).error().code, ErrorCode::kExists);
  EXPECT_EQ(Get().name, "nic0");
  EXPECT_TRUE(Must(pod_route_->DeleteAltName(there, "rail0")));
  Must(host_route_->MoveLink(index_, pod_, "net1", {}));
}

}  // namespace
}  // namespace railhead::testing
