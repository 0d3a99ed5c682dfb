// `railctl ipam` as a process.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cni/state/journal.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "tests/support/process.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr const char* kPool = "10.1.0.0/24";

class IpamCommandTest : public ::testing::Test {
 protected:
  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {RAILCTL, "ipam"});
    return RunProcess(arguments, {{"RAILHEAD_ROOT", temp_.directory()}}, "");
  }
  nlohmann::json RunJson(const std::vector<std::string>& arguments) {
    return nlohmann::json::parse(Run(arguments).out, nullptr, false);
  }
  std::string Give(const std::string& container, const ipam::ClockReading& now) {
    auto store = ipam::AddressStore::Open(temp_.root(), [now] { return now; });
    EXPECT_TRUE(store) << Describe(store.error());
    const ipam::AddressPool pool{kPool, *ipam::RangeSet::Make({*IpPrefix::Parse(kPool), {}, {}, {}}),
                                 std::chrono::hours(1)};
    const auto given = store->Allocate({"blue", container, "eth1"}, pool);
    EXPECT_TRUE(given) << Describe(given.error());
    return given->address.ToString();
  }
  ipam::ClockReading Now() { return *ipam::ReadClocks(temp_.root()); }
  void Remember(const std::string& container) {
    ASSERT_TRUE(MakeDirectories(temp_.root().Path("/var/lib/cni/results")));
    ASSERT_TRUE(WriteAtomic(temp_.root().Path("/var/lib/cni/results/blue-" + container + "-eth1"), "{}",
                            Sync::kVolatile));
  }
  void Attach(const std::string& container) {
    JournalEntry entry;
    entry.key = {"blue", container, "eth1"};
    entry.boot_id = *BootId(temp_.root());
    entry.phase = Phase::kDone;
    entry.cni_args = {{"K8S_POD_NAMESPACE", "train"}, {"K8S_POD_NAME", "worker-0"}};
    ASSERT_TRUE(Journal(temp_.root()).Write(entry));
  }
  TempRoot temp_;
};

TEST_F(IpamCommandTest, NothingIsHeldWithoutAStore) {
  EXPECT_EQ(Run({"list"}).status, 0);
  EXPECT_EQ(RunJson({"list", "-o", "json"})["addresses"].size(), 0U);
  EXPECT_EQ(Run({"check"}).out, "0 addresses, no problem found\n");
  EXPECT_FALSE(Exists(temp_.root().Path("/var/lib/railhead"))) << "looking makes nothing";
}

TEST_F(IpamCommandTest, ListsHoldersAndTheirPods) {
  const std::string first = Give("aaa", Now());
  Give("bbb", Now());
  Attach("aaa");
  const auto list = RunJson({"list", "-o", "json"})["addresses"];
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["address"], first);
  EXPECT_EQ(list[0]["pod"], "train/worker-0");
  EXPECT_EQ(list[0]["state"], "held");
  EXPECT_EQ(list[0]["attached"], true);
  EXPECT_EQ(list[1]["container"], "bbb");
  EXPECT_EQ(list[1]["attached"], false);
  const auto table = Run({"list"}).out;
  EXPECT_EQ(table.rfind("ADDRESS   POOL         STATE  SINCE", 0), 0U) << table;
  EXPECT_NE(table.find("train/worker-0"), std::string::npos);
  EXPECT_EQ(RunJson({"list", "-o", "json", "--pool", "10.9.0.0/24"})["addresses"].size(), 0U);
}

class RailAddressesTest : public IpamCommandTest {
 protected:
  void SetUp() override {
    WriteFabric(R"("nodes": {"gpu-001": 1}, )");
    ASSERT_TRUE(WriteAtomic(temp_.root().Path("/etc/railhead/node-name"), "gpu-001\n", Sync::kVolatile));
  }
  void WriteFabric(const std::string& nodes) {
    ASSERT_TRUE(MakeDirectories(temp_.root().Path("/etc/railhead")));
    const std::string text = R"({"version": 1, )" + nodes + R"("rails": [
        {"name": "rail0", "pf": "pf0", "subnet": "10.1.0.0/24", "nodeBlock": 28, "gateway": "10.1.0.17",
         "exclude": ["10.1.0.30-10.1.0.40"]},
        {"name": "rail1", "pf": "pf1", "subnet": "fd00:1::/64", "nodeBlock": 96},
        {"name": "rail2", "pf": "pf2"}]})";
    ASSERT_TRUE(WriteAtomic(temp_.root().Path("/etc/railhead/fabric.json"), text, Sync::kVolatile));
  }
  // Of rail0: the first `count` addresses of the range, each for a container "cN".
  void Hold(const char* range, int count) {
    auto store = ipam::AddressStore::Open(temp_.root());
    const ipam::AddressPool pool{
        kPool, *ipam::RangeSet::Make({*IpPrefix::Parse(kPool), {*IpRange::Parse(range)}, {}, {}}),
        std::chrono::hours(1)};
    for (int i = 0; i < count; ++i) {
      const auto given = store->Allocate({"blue", "c" + std::to_string(i), "eth1"}, pool);
      ASSERT_TRUE(given) << Describe(given.error());
    }
  }
  nlohmann::json Rails(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"list", "-o", "json"});
    return RunJson(more)["rails"];
  }
};

TEST_F(RailAddressesTest, AreOfThisNodesRange) {
  const auto empty = Rails();
  ASSERT_EQ(empty.size(), 2U) << "rail2 has no subnet";
  EXPECT_EQ(empty[0], nlohmann::json::parse(R"({"rail": "rail0", "pool": "10.1.0.0/24",
      "ranges": ["10.1.0.16-10.1.0.31"], "size": 13, "held": 0, "coolingDown": 0, "quarantined": 0, "free": 13})"));
  EXPECT_EQ(empty[1]["ranges"], nlohmann::json::parse(R"(["fd00:1::1:0:0-fd00:1::1:ffff:ffff"])"));
  EXPECT_EQ(empty[1]["free"], 1ULL << 32);
  EXPECT_EQ(Rails({"--rail", "rail1"}).size(), 1U);
  EXPECT_EQ(Rails({"--pool", kPool}).size(), 1U);
  EXPECT_EQ(Rails({"--pool", "10.9.0.0/24"}).size(), 0U);
}

// Whatever the states are, they add up to the range's addresses.
TEST_F(RailAddressesTest, EachStateIsCounted) {
  Hold("10.1.0.18-10.1.0.23", 6);
  const auto quarantine = [&](const std::string& container) {
    auto store = ipam::AddressStore::Open(temp_.root());
    const auto held = store->Find({"blue", container, "eth1"});
    ASSERT_TRUE(held && held->size() == 1);
    ASSERT_TRUE(store->Quarantine({"blue", container, "eth1"}, held->front().address));
  };
  const auto release = [&](const std::string& container) {
    auto store = ipam::AddressStore::Open(temp_.root());
    ASSERT_TRUE(store->Release({"blue", container, "eth1"}));
  };
  const auto expect = [&](int held, int cooling_down, int quarantined) {
    const auto rail = Rails()[0];
    EXPECT_EQ(rail["held"], held) << rail;
    EXPECT_EQ(rail["coolingDown"], cooling_down) << rail;
    EXPECT_EQ(rail["quarantined"], quarantined) << rail;
    EXPECT_EQ(rail["free"], 13 - 6) << rail;
  };
  expect(6, 0, 0);
  release("c0");
  expect(5, 1, 0);
  quarantine("c1");
  release("c2");
  expect(3, 2, 1);
  const auto text = Run({"list"}).out;
  EXPECT_EQ(text.rfind("RAIL   POOL         RANGE ", 0), 0U) << text;
  EXPECT_NE(text.find(" HELD  COOLING DOWN  QUARANTINED  FREE\nrail0  10.1.0.0/24  10.1.0.16-10.1.0.31 "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n\nADDRESS "), std::string::npos) << text;
}

TEST_F(RailAddressesTest, OtherNodesAddressesAreNotCounted) {
  Hold("10.1.0.100-10.1.0.110", 3);
  EXPECT_EQ(Rails()[0]["held"], 0);
  EXPECT_EQ(RunJson({"list", "-o", "json"})["addresses"].size(), 3U);
}

TEST_F(RailAddressesTest, WithoutARangeTheReasonIsStated) {
  WriteFabric(R"("nodes": {"gpu-002": 1}, )");
  auto rail = Rails()[0];
  EXPECT_EQ(rail["because"], "fabric.json gives this node no range");
  EXPECT_EQ(rail["free"], 0);
  EXPECT_NE(Run({"list"}).out.find("note: rail1: fabric.json gives this node no range\n"), std::string::npos);
  WriteFabric(R"("addresses": {"index": {"from": "kubernetes"}}, )");
  rail = Rails()[0];
  EXPECT_NE(rail["because"].get<std::string>().find("index"), std::string::npos) << rail;
  WriteFabric(R"("nodes": {"gpu-001": 2}, )");
  rail = Rails()[0];
  EXPECT_EQ(rail["ranges"], nlohmann::json::parse(R"(["10.1.0.32-10.1.0.47"])"));
  EXPECT_EQ(rail["size"], 7) << "without the excluded ones";
}

TEST_F(RailAddressesTest, ADamagedFabricHidesNoAddress) {
  Hold("10.1.0.18-10.1.0.23", 1);
  ASSERT_TRUE(WriteAtomic(temp_.root().Path("/etc/railhead/fabric.json"), "{", Sync::kVolatile));
  const auto list = Run({"list"});
  EXPECT_EQ(list.status, 0);
  EXPECT_EQ(list.out.rfind("ADDRESS ", 0), 0U) << list.out;
  EXPECT_NE(list.err.find("fabric.json"), std::string::npos) << list.err;
}

TEST_F(IpamCommandTest, ShowsByAddressAndContainer) {
  const std::string first = Give("aaa1", Now());
  Give("bbb", Now());
  EXPECT_EQ(RunJson({"show", first, "-o", "json"})["addresses"][0]["container"], "aaa1");
  EXPECT_EQ(RunJson({"show", "bb", "-o", "json"})["addresses"].size(), 1U);
  const auto none = Run({"show", "10.1.0.99"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("the store has no address of '10.1.0.99'"), std::string::npos) << none.err;
}

TEST_F(IpamCommandTest, LeaksAreFoundAndExplained) {
  Give("attached", Now());
  Give("remembered", Now());
  const std::string lost = Give("lost", Now());
  Attach("attached");
  const auto unsure = Run({"check"});
  EXPECT_EQ(unsure.status, 0) << "without a runtime's cache nobody can tell";
  EXPECT_NE(unsure.out.find("leaks cannot be found"), std::string::npos) << unsure.out;
  Remember("remembered");
  const auto found = Run({"check"});
  EXPECT_EQ(found.status, 1);
  EXPECT_NE(found.out.find("leaked: " + lost + " of blue, container lost: no attachment"), std::string::npos)
      << found.out;
  const auto leaked = RunJson({"check", "-o", "json"})["leaked"];
  ASSERT_EQ(leaked.size(), 1U);
  EXPECT_EQ(leaked[0]["address"], lost);
}

TEST_F(IpamCommandTest, ReleasesWhatIsLeakedAndOnlyByForceWhatMayBeInUse) {
  const std::string used = Give("used", Now());
  const std::string lost = Give("lost", Now());
  Attach("used");
  Remember("used");
  const auto refused = Run({"release", used});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("may be in use by container used, pod train/worker-0"), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("--force"), std::string::npos);
  EXPECT_EQ(Run({"release", lost}).status, 0);
  EXPECT_EQ(Run({"release", lost}).status, 1) << "it cools down";
  EXPECT_EQ(RunJson({"show", lost, "-o", "json"})["addresses"][0]["state"], "cooling down");
  EXPECT_EQ(Run({"release", used, "--force"}).status, 0);
  EXPECT_EQ(RunJson({"show", used, "-o", "json"})["addresses"][0]["state"], "cooling down");
}

TEST_F(IpamCommandTest, Events) {
  const std::string used = Give("aaa", Now());
  {
    auto store = ipam::AddressStore::Open(temp_.root());
    ASSERT_TRUE(store->Quarantine({"blue", "aaa", "eth1"}, *IpAddress::Parse(used)));
  }
  const auto events = RunJson({"events", "-o", "json"})["events"];
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["event"], "quarantined");
  EXPECT_EQ(events[0]["address"], used);
  EXPECT_NE(Run({"events"})
                .out.find(used + " of 10.1.0.0/24 is in use by another machine and in quarantine for 3600 s"),
            std::string::npos);
  EXPECT_EQ(RunJson({"show", used, "-o", "json"})["addresses"][0]["state"], "quarantined");
}

TEST_F(IpamCommandTest, ExportsEverything) {
  Give("aaa", Now());
  const auto json = nlohmann::json::parse(Run({"export"}).out, nullptr, false);
  ASSERT_EQ(json["addresses"].size(), 1U);
  EXPECT_EQ(json["addresses"][0]["bootId"], *BootId(temp_.root()));
}

TEST_F(IpamCommandTest, TakesOverFromHostLocal) {
  const std::string directory = temp_.root().Path("/var/lib/cni/networks/blue");
  ASSERT_TRUE(MakeDirectories(directory));
  const auto file = [&](const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteAtomic(directory + "/" + name, content, Sync::kVolatile));
  };
  file("10.1.0.7", "aaa\r\neth1");
  file("10.1.0.9", "bbb");
  file("last_reserved_ip.0", "10.1.0.9");
  file("lock", "");
  const auto import = [&] { return Run({"import", "host-local", "--network", "blue", "--subnet", kPool}); };
  EXPECT_EQ(import().out, "2 addresses are held by their pods, 0 refused\n");
  const auto again = import();
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(RunJson({"show", "10.1.0.7", "-o", "json"})["addresses"][0]["container"], "aaa");
  EXPECT_EQ(RunJson({"show", "bbb", "-o", "json"})["addresses"][0]["interface"], "eth0");
  EXPECT_NE(Give("new", Now()), "10.1.0.7");

  file("10.9.0.1", "ccc\r\neth1");
  const auto elsewhere = import();
  EXPECT_EQ(elsewhere.status, 1);
  EXPECT_NE(elsewhere.err.find("10.9.0.1: is in none of the subnets given"), std::string::npos)
      << elsewhere.err;
  ASSERT_TRUE(RemoveFile(directory + "/10.9.0.1"));
  file("10.1.0.8", "");
  EXPECT_NE(import().err.find("10.1.0.8: names no container"), std::string::npos);
}

TEST_F(IpamCommandTest, TakesOverFromWhereabouts) {
  const std::string path = temp_.root().Path("/pools.json");
  ASSERT_TRUE(WriteAtomic(path, R"({"apiVersion": "v1", "kind": "List", "items": [{"kind": "IPPool",
      "metadata": {"name": "10.1.0.0-24"}, "spec": {"range": "10.1.0.5/24", "allocations": {
        "5": {"id": "here", "ifname": "eth1", "podref": "train/a"},
        "6": {"id": "there", "ifname": "eth1", "podref": "train/b"}}}}]})",
                          Sync::kVolatile));
  Remember("here");
  const auto import = [&] { return Run({"import", "whereabouts", "--network", "blue", path}); };
  const std::string expected =
      "1 addresses are held by their pods, 1 of other nodes are in quarantine for 168 hours, 0 refused\n";
  EXPECT_EQ(import().out, expected);
  EXPECT_EQ(import().out, expected) << "again, it changes nothing";
  EXPECT_EQ(RunJson({"show", "10.1.0.5", "-o", "json"})["addresses"][0]["state"], "held");
  EXPECT_EQ(RunJson({"show", "10.1.0.6", "-o", "json"})["addresses"][0]["state"], "quarantined");
  ASSERT_TRUE(
      WriteAtomic(path, R"({"spec": {"range": "10.1.0.0/24", "allocations": {"x": {}}}})", Sync::kVolatile));
  const auto wrong = import();
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("/spec/allocations/x"), std::string::npos) << wrong.err;
}

TEST_F(IpamCommandTest, WrongCommandLine) {
  EXPECT_EQ(Run({}).status, 2);
  EXPECT_EQ(Run({"release"}).status, 2);
  EXPECT_EQ(Run({"list", "--pol", "x"}).status, 2);
}

}  // namespace
}  // namespace railhead::testing
