// GC and STATUS of CNI 1.1.0.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/protocol/cni_result.h"
#include "cni/state/journal.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

class PluginGcTest : public RailsFixture {
 protected:
  [[nodiscard]] Call Single(const std::string& container, int rail, int n,
                            const std::string& network = "net") {
    return {.network = network,
            .container = container,
            .netns = MakePod(container),
            .config = R"("deviceID":")" + Bdf(rail, n) + R"(",)" +
                      Ipam("10.100.0." + std::to_string(20 + n) + "/24")};
  }
};

TEST_F(PluginGcTest, ReleasesWhatIsNotValid) {
  const Call kept = Single("kept", 0, 0);
  const Call lost = Single("lost", 0, 1);
  const Call foreign = Single("foreign", 0, 2, "other");
  ASSERT_TRUE(Add(kept));
  ASSERT_TRUE(Add(foreign));
  const auto before = World();
  ASSERT_TRUE(Add(lost));
  (void)IpamLog();
  const auto collected = Gc({{"kept", "net1"}}, {.network = "net", .config = Ipam()});
  ASSERT_TRUE(collected) << Describe(collected.error());
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_EQ(IpamLog(), "DEL net1, GC");
  EXPECT_TRUE(Check(kept));
  EXPECT_TRUE(Check(foreign));
}

TEST_F(PluginGcTest, OtherInterfaceOfTheSameContainerIsNotValid) {
  ASSERT_TRUE(Add(Single("c7", 0, 0)));
  ASSERT_TRUE(Gc({{"c7", "net2"}, {"c8", "net1"}}, {.network = "net", .config = Ipam()}));
  EXPECT_EQ(Files(), "");
  EXPECT_EQ(HeldAddresses(), "");
}

TEST_F(PluginGcTest, WithoutAnyValidAllGo) {
  const auto links_before = OurLinks(kHost);
  ASSERT_TRUE(Add(AllRails()));
  Call single = Single("lost", 0, 1, "rails");
  ASSERT_TRUE(Add(single));
  const auto collected = Gc({}, {.network = "rails", .config = IpamForAll()});
  ASSERT_TRUE(collected) << Describe(collected.error());
  EXPECT_EQ(OurLinks(kHost), links_before);
  EXPECT_EQ(Files(), "");
  EXPECT_EQ(HeldAddresses(), "");
}

// A killed ADD that was never repeated: the runtime does not know the attachment.
TEST_F(PluginGcTest, FinishesKilledAdds) {
  const auto before = World();
  ASSERT_TRUE(Kill(AllRails(), CountAdd(AllRails(), 85) * 2 / 3));
  EXPECT_NE(ChangedSince(before), "");
  ASSERT_TRUE(Gc({}, {.network = "rails", .config = IpamForAll()}));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginGcTest, OneThatFailsDoesNotStopTheOthers) {
  const Call first = Single("a", 0, 0);
  const Call stuck = Single("b", 0, 1);
  const Call last = Single("c", 0, 2);
  for (const Call& call : {first, stuck, last}) ASSERT_TRUE(Add(call));
  kernel_.FailEvery("MoveLink", EBUSY, "pf0v1");
  (void)IpamLog();
  const auto collected = Gc({}, {.network = "net", .config = Ipam()});
  kernel_.StopFailing();
  ASSERT_FALSE(collected);
  EXPECT_NE(collected.error().message.find("b/net@net1"), std::string::npos) << collected.error().message;
  EXPECT_EQ(HeldAddresses(), "b@net1");
  EXPECT_EQ(IpamLog(), "DEL net1, DEL net1, GC") << "the IPAM plugin is asked all the same";
  EXPECT_TRUE(Gc({}, {.network = "net", .config = Ipam()}));
  EXPECT_EQ(Files(), "");
}

// Namespaces that a process keeps alive, although their paths are gone.
class PluginGcStuckTest : public PluginGcTest {
 protected:
  [[nodiscard]] int VfsOfEach() const override { return 16; }
  // For `stuck` attachments that cannot be restored, and the same number that can.
  std::chrono::steady_clock::duration Collect(int stuck) {
    std::vector<std::string> pods;
    const auto attach = [&](const Call& call) {
      pods.push_back(call.netns);
      const auto added = Add(call);
      EXPECT_TRUE(added) << Describe(added.error());
    };
    for (int n = 0; n < stuck; ++n) {
      // Names that come before and after those of the others.
      const Call held = Single("b" + std::to_string(n), 0, n);
      attach(held);
      attach(Single((n % 2 == 0 ? "a" : "c") + std::to_string(n), 0, 8 + n));
      (void)::unlink(held.netns.c_str());
    }
    int waits = 0;
    kernel_.before = [&](const std::string&) {
      // From its second pass on GC waits. All releasable attachments are gone after the first.
      if (HeldAddresses().find('a') == std::string::npos && HeldAddresses().find('c') == std::string::npos)
        ++waits;
    };
    kernel_.FailEvery("RebindDriver", EBUSY);  // which would bring them back
    const auto began = std::chrono::steady_clock::now();
    const auto collected = Gc({}, {.network = "net", .config = Ipam() + R"(,"previousDelTimeoutSeconds":4)"});
    const auto took = std::chrono::steady_clock::now() - began;
    kernel_.before = {};
    kernel_.StopFailing();
    EXPECT_FALSE(collected);
    EXPECT_GT(waits, stuck) << "each stuck one is tried again after the others";
    EXPECT_EQ(Journal(sysfs_.root()).Scan()->entries.size(), static_cast<std::size_t>(stuck));
    for (const std::string& pod : pods) kernel_.RemoveNamespace(pod);
    const auto again = Gc({}, {.network = "net", .config = Ipam()});
    EXPECT_TRUE(again) << Describe(again.error());
    return took;
  }
};

TEST_F(PluginGcStuckTest, AllShareOneDeadline) {
  const auto before = World();
  const auto one = Collect(1);
  EXPECT_EQ(ChangedSince(before), "");
  const auto many = Collect(8);
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_LT(many, 4 * one) << "eight waits one after the other would take eight times as long";
}

TEST_F(PluginGcTest, DamagedEntryDoesNotStopTheOthers) {
  const Call damaged = Single("a", 0, 0);
  const Call lost = Single("b", 0, 1);
  ASSERT_TRUE(Add(damaged));
  ASSERT_TRUE(Add(lost));
  WriteFileAt(sysfs_.directory() + "/run/railhead/attachments/a/net@net1.json", "{");
  const auto collected = Gc({}, {.network = "net", .config = Ipam()});
  ASSERT_FALSE(collected);
  EXPECT_NE(collected.error().message.find("a/net@net1.json"), std::string::npos)
      << collected.error().message;
  EXPECT_EQ(HeldAddresses(), "a@net1") << "the other one is released";
  EXPECT_TRUE(Gc({{"a", "net1"}}, {.network = "net", .config = Ipam()}))
      << "one that is valid is nobody's trouble";
  EXPECT_TRUE(Gc({}, {.network = "other", .config = Ipam()})) << "nor is one of another network";
}

// The IPAM plugin knows the links of several devices by their own names.
TEST_F(PluginGcTest, IpamGetsEveryValidLink) {
  ASSERT_TRUE(Add(AllRails()));
  const auto collected = Gc({{"c1", "net1"}}, {.network = "rails", .config = IpamForAll()});
  ASSERT_TRUE(collected) << Describe(collected.error());
  const auto asked = nlohmann::json::parse(IpamInput("GC"), nullptr, false)["cni.dev/valid-attachments"];
  for (const char* name : {"net1", "rail0", "rail1", "rail2"}) {
    const nlohmann::json wanted = {{"containerID", "c1"}, {"ifname", name}};
    EXPECT_NE(std::find(asked.begin(), asked.end(), wanted), asked.end()) << name << " in " << asked;
  }
  EXPECT_TRUE(Check(AllRails()));
}

TEST_F(PluginGcTest, AFailureOfIpamIsReported) {
  FailIpam("GC");
  EXPECT_FALSE(Gc({}, {.network = "net", .config = Ipam()}));
  EXPECT_TRUE(Gc({}, {.network = "net", .config = R"("ipam":{})"})) << "none to ask";
}

class PluginStatusTest : public RailsFixture {
 protected:
  void ExpectStatus(int code, const std::string& words, const std::string& config) {
    const auto before = World();
    const auto status = Status(config);
    ASSERT_FALSE(status) << words;
    EXPECT_EQ(CniCodeOf(status.error().code), code) << Describe(status.error());
    EXPECT_NE(Describe(status.error()).find(words), std::string::npos) << Describe(status.error());
    EXPECT_EQ(ChangedSince(before), "");
  }
  void Carrier(const std::string& pf, bool on) {
    kernel_.state().Find(kHost, pf)->wire = on;
    kernel_.Sync();
  }
};

TEST_F(PluginStatusTest, FineAndSilent) {
  const auto before = World();
  const auto status = Status(Ipam());
  EXPECT_TRUE(status) << Describe(status.error());
  EXPECT_EQ(IpamLog(), "STATUS");
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginStatusTest, BrokenFabricIs50) {
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", "{");
  ExpectStatus(kCniUnavailable, "fabric.json", Ipam());
}

TEST_F(PluginStatusTest, StateThatCannotBeWrittenIs50) {
  std::filesystem::remove_all(sysfs_.directory() + "/run/railhead");
  WriteFileAt(sysfs_.directory() + "/run/railhead", "a file in the way");
  ExpectStatus(kCniUnavailable, "/run/railhead", Ipam());
}

TEST_F(PluginStatusTest, IpamThatRefusesIs50) {
  FailIpam("STATUS");
  ExpectStatus(kCniUnavailable, "the address store is away", Ipam());
}

TEST_F(PluginStatusTest, IpamThatIsNotThereIs50) {
  ExpectStatus(kCniUnavailable, "no-such-ipam", R"("ipam":{"type":"no-such-ipam"})");
}

// The runtime would report the whole node as not ready, and Kubernetes would evict pods that have no NIC.
TEST_F(PluginStatusTest, PassesWhateverTheRailsAre) {
  const auto passes = [&] {
    const auto status = Status(Ipam());
    return status ? "" : Describe(status.error());
  };
  for (const char* pf : {"pf0", "pf1", "pf2"}) {
    Carrier(pf, false);
    EXPECT_EQ(passes(), "") << pf << " has no carrier";
  }
  for (const char* pf : {"pf0", "pf1", "pf2"}) {
    kernel_.SetUp(kHost, pf, false);
    EXPECT_EQ(passes(), "") << pf << " is down";
  }
  WriteRails({{"rail0", "pf0"}, {"rail1", "pf17"}});
  EXPECT_EQ(passes(), "") << "a PF is missing";
  WriteFileAt(sysfs_.directory() + "/var/lib/railhead/drains.json",
              R"({"version":1,"drains":[{"rail":"rail0"}]})");
  EXPECT_EQ(passes(), "") << "a rail is drained";
}

// A node of the cluster without rails runs all other pods.
TEST_F(PluginStatusTest, NodeWithoutRails) {
  WriteRails({{"rail0", "pf17"}});
  EXPECT_TRUE(Status(Ipam()));
  std::filesystem::remove(sysfs_.directory() + "/etc/railhead/fabric.json");
  EXPECT_TRUE(Status(Ipam()));
}

TEST_F(PluginStatusTest, BadConfiguration) {
  ExpectStatus(kCniInvalidConfig, "/vlan: 4095", R"("vlan":4095)");
}

}  // namespace
}  // namespace railhead::testing
