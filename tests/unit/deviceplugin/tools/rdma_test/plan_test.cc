// Builds the ends from the command line and the journal, the pairs to test, and their GIDs.
#include "deviceplugin/tools/rdma_test/plan.h"

#include <gtest/gtest.h>

#include "deviceplugin/tools/rdma_test/choose_endpoint.h"
#include "tests/unit/deviceplugin/tools/rdma_test/support.h"

namespace railhead::rdma_test {
namespace {

AttachedDevice Link(const std::string& rail, const std::string& device, const char* address) {
  AttachedDevice link;
  link.rail = rail;
  link.rdma.device = device;
  link.rdma.gid_index = 3;
  link.nccl.traffic_class = 104;
  link.nccl.service_level = 3;
  link.addressing.addresses = {*IpPrefix::Parse(address)};
  return link;
}

// Two pods on rail0 and rail1, one of them by two attachments, and one that is being made.
std::vector<JournalEntry> SomeJournal() {
  JournalEntry a;
  a.key = {"roce", "aaaa1111", "net1"};
  a.phase = Phase::kDone;
  a.netns = "/run/netns/a";
  a.netns_inode = 1;
  a.cni_args = {{"K8S_POD_NAMESPACE", "jobs"}, {"K8S_POD_NAME", "train-0"}, {"K8S_POD_UID", "uid-a"}};
  a.devices = {Link("rail0", "mlx5_4", "10.100.0.1/24")};
  JournalEntry a2 = a;
  a2.key.ifname = "net2";
  a2.devices = {Link("rail1", "mlx5_9", "10.101.0.1/24")};
  JournalEntry b = a;
  b.key = {"roce", "aaaa2222", "net1"};
  b.netns = "/run/netns/b";
  b.netns_inode = 2;
  b.cni_args["K8S_POD_NAME"] = "train-1";
  b.cni_args["K8S_POD_UID"] = "uid-b";
  b.devices = {Link("rail0", "mlx5_5", "10.100.0.2/24"), Link("rail1", "mlx5_10", "10.101.0.2/24")};
  AttachedDevice no_rdma;
  no_rdma.rail = "rail2";
  b.devices.push_back(no_rdma);
  JournalEntry c = a;
  c.key = {"roce", "cccc", "net1"};
  c.phase = Phase::kPlanned;
  c.cni_args.clear();
  return {a, a2, b, c};
}

Result<TestEnd> Resolve(const std::string& said, std::optional<std::uint64_t> inode = std::nullopt) {
  return ResolveEnd(said, SomeJournal(), inode);
}

std::vector<TestEnd> Ends(const std::vector<std::string>& said) {
  std::vector<TestEnd> ends;
  ends.reserve(said.size());
  for (const std::string& one : said) ends.push_back(*Resolve(one));
  return ends;
}

// "FROM>TO RAIL FROM_DEVICE TO_DEVICE", a test each.
std::vector<std::string> Plan(const std::vector<std::string>& said, const PlanOptions& options = {}) {
  const auto ends = Ends(said);
  const auto tests = PlanTests(ends, options);
  if (!tests) return {"error: " + tests.error().message};
  std::vector<std::string> lines;
  for (const PlannedTest& test : *tests) {
    lines.push_back(ends[test.from].name + ">" + ends[test.to].name + " " + test.from_rail.rail + " " +
                    test.from_rail.device + " " + test.to_rail.device);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(ResolveTest, ByContainerAndNamespace) {
  const auto end = Resolve("aaaa1111");
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->netns, "/run/netns/a");
  ASSERT_EQ(end->rails.size(), 2) << "both attachments";
  EXPECT_EQ(end->rails[1].device, "mlx5_9");
  EXPECT_EQ(end->rails[1].gid_index, 3);
  EXPECT_EQ(end->rails[1].traffic_class, 104);
  EXPECT_EQ(end->rails[1].service_level, 3);
  EXPECT_EQ(end->rails[1].address, IpAddress::Parse("10.101.0.1"));
  EXPECT_EQ(Resolve("/proc/7/ns/net", 2)->rails.size(), 2)
      << "another path of b's namespace; no RDMA, no rail";
  EXPECT_TRUE(Resolve("/run/netns/b", 77)->rails.empty()) << "its namespace has been replaced";
  EXPECT_TRUE(Resolve("host")->rails.empty());
  EXPECT_EQ(Resolve("[fd00::1]:7471")->remote, "[fd00::1]:7471");
}

TEST(ResolveTest, WithADevice) {
  const auto known = Resolve("aaaa1111@mlx5_9");
  ASSERT_TRUE(known);
  ASSERT_EQ(known->rails.size(), 1);
  EXPECT_EQ(known->rails[0].rail, "rail1");
  EXPECT_EQ(known->rails[0].gid_index, 3);
  const auto other = Resolve("host@mlx5_0");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->rails.at(0).device, "mlx5_0");
  EXPECT_EQ(other->rails.at(0).gid_index, std::nullopt);
}

TEST(ResolveTest, WhatIsNoEnd) {
  EXPECT_EQ(Resolve("aaaa").error().code, ErrorCode::kNotFound) << "railctl completes it";
  EXPECT_EQ(Resolve("dddd").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Resolve("cccc").error().code, ErrorCode::kNotFound) << "its ADD still runs";
  EXPECT_EQ(Resolve("").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(Resolve("host@").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(Resolve("@mlx5_0").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(Resolve("10.0.0.1:7471@mlx5_0").error().code, ErrorCode::kInvalid);
}

TEST(PlanTest, EachWithEachOnEachRail) {
  EXPECT_EQ(Plan({"aaaa1111", "aaaa2222", "host"}),
            (Lines{"aaaa1111>aaaa2222 rail0 mlx5_4 mlx5_5", "aaaa1111>aaaa2222 rail1 mlx5_9 mlx5_10",
                   "aaaa1111>host rail0 mlx5_4 ", "aaaa1111>host rail1 mlx5_9 ",
                   "aaaa2222>host rail0 mlx5_5 ", "aaaa2222>host rail1 mlx5_10 "}));
}

TEST(PlanTest, OneRail) {
  PlanOptions options;
  options.rail = "rail1";
  EXPECT_EQ(Plan({"aaaa1111", "aaaa2222"}, options), Lines{"aaaa1111>aaaa2222 rail1 mlx5_9 mlx5_10"});
  options.rail = "rail7";
  EXPECT_EQ(Plan({"aaaa1111", "aaaa2222"}, options),
            Lines{"error: aaaa1111 and aaaa2222 have no rail in common that is called rail7"});
  EXPECT_EQ(Plan({"aaaa1111@mlx5_4", "aaaa2222@mlx5_10"}),
            Lines{"error: aaaa1111@mlx5_4 and aaaa2222@mlx5_10 have no rail in common"});
}

TEST(PlanTest, EndsWithoutRails) {
  EXPECT_EQ(Plan({"host@a", "host@b"}), Lines{"host@a>host@b  a b"});
  EXPECT_EQ(Plan({"host@a", "aaaa1111@mlx5_4"}), Lines{"host@a>aaaa1111@mlx5_4 rail0 a mlx5_4"});
}

TEST(PlanTest, BothWays) {
  PlanOptions options;
  options.both_ways = true;
  options.rail = "rail0";
  EXPECT_EQ(Plan({"aaaa1111", "aaaa2222"}, options),
            (Lines{"aaaa1111>aaaa2222 rail0 mlx5_4 mlx5_5", "aaaa2222>aaaa1111 rail0 mlx5_5 mlx5_4"}));
}

TEST(PlanTest, AnEndOnAnotherNodeAnswers) {
  PlanOptions options;
  options.rail = "rail0";
  options.both_ways = true;
  EXPECT_EQ(Plan({"10.0.0.1:7471", "aaaa1111"}, options), Lines{"aaaa1111>10.0.0.1:7471 rail0 mlx5_4 "});
  EXPECT_EQ(Plan({"10.0.0.1:7471", "10.0.0.2:7471"}),
            Lines{"error: 10.0.0.1:7471 and 10.0.0.2:7471 are both on other nodes"});
}

TEST(PlanTest, OverridesAreForThisNode) {
  PlanOptions options;
  options.rail = "rail0";
  options.gid_index = 5;
  options.traffic_class = 96;
  options.service_level = 5;
  const auto here = PlanTests(Ends({"aaaa1111", "aaaa2222"}), options);
  ASSERT_TRUE(here);
  EXPECT_EQ(here->at(0).from_rail.gid_index, 5);
  EXPECT_EQ(here->at(0).to_rail.gid_index, 5);
  EXPECT_EQ(here->at(0).to_rail.traffic_class, 96);
  EXPECT_EQ(here->at(0).to_rail.service_level, 5);
  options.device = "mlx5_77";
  options.gid_index.reset();
  const auto there = PlanTests(Ends({"aaaa1111", "10.0.0.1:7471"}), options);
  ASSERT_TRUE(there);
  EXPECT_EQ(there->at(0).from_rail.device, "mlx5_77");
  EXPECT_EQ(there->at(0).from_rail.gid_index, std::nullopt) << "3 was the other device's";
  EXPECT_EQ(there->at(0).to_rail.device, "") << "chosen there";
  EXPECT_EQ(Plan({"aaaa1111", "aaaa2222"}, options),
            Lines{"error: --device is for one end on this node; there are 2"});
}

TEST(PlanTest, TwoDifferentEnds) {
  EXPECT_EQ(Plan({"host"}), Lines{"error: a test has two ends at least"});
  EXPECT_EQ(Plan({"host", "host"}), Lines{"error: host is there twice"});
}

TEST(RailOfTest, WhatAListeningEndUses) {
  const TestEnd pod = *Resolve("aaaa2222");
  EXPECT_EQ(RailOf(pod, "rail1", {})->device, "mlx5_10");
  EXPECT_EQ(RailOf(pod, "rail7", {}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(RailOf(*Resolve("aaaa2222@mlx5_5"), "", {})->device, "mlx5_5") << "it has one only";
  EXPECT_EQ(RailOf(*Resolve("host"), "rail1", {})->device, "");
  PlanOptions options;
  options.gid_index = 9;
  EXPECT_EQ(RailOf(pod, "rail0", options)->gid_index, 9);
}

Candidate At(const std::string& device, int index, const char* address) {
  const IpPrefix prefix = *IpPrefix::Parse(address);
  return {device, {index, GidOf(prefix.address), GidType::kRoceV2, ""}, prefix};
}

TEST(PickTest, TheSubnetOfTheOtherEnd) {
  const std::vector<Candidate> all = {At("mlx5_0", 3, "10.100.0.9/24"), At("mlx5_1", 5, "10.101.0.9/24")};
  EXPECT_EQ(PickCandidate(all, IpAddress::Parse("10.101.0.1"))->device, "mlx5_1");
  EXPECT_EQ(PickCandidate(all, std::nullopt).error().code, ErrorCode::kConflict);
  EXPECT_EQ(PickCandidate(all, IpAddress::Parse("10.55.0.1")).error().code, ErrorCode::kConflict);
  EXPECT_EQ(PickCandidate({all[0]}, IpAddress::Parse("10.55.0.1"))->device, "mlx5_0")
      << "through the gateway";
}

TEST(PickTest, FamilyAndIndex) {
  const std::vector<Candidate> one = {At("mlx5_0", 7, "fd00::9/64"), At("mlx5_0", 5, "10.100.0.9/24"),
                                      At("mlx5_0", 3, "10.100.0.8/24")};
  EXPECT_EQ(PickCandidate(one, std::nullopt)->gid.index, 3) << "IPv4 first, the lowest index";
  EXPECT_EQ(PickCandidate(one, IpAddress::Parse("fd00:1::1"))->gid.index, 7) << "the other end has IPv6";
  EXPECT_EQ(PickCandidate({one[0]}, IpAddress::Parse("10.0.0.1")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(PickCandidate({}, std::nullopt).error().code, ErrorCode::kNotFound);
}

TEST(PickTest, AddressOfAGid) {
  EXPECT_EQ(AddressOfGid(Gid("10.0.0.1")), *IpAddress::Parse("10.0.0.1"));
  EXPECT_EQ(AddressOfGid(Gid("fd00::1")), *IpAddress::Parse("fd00::1"));
}

}  // namespace
}  // namespace railhead::rdma_test
