// Entries of several devices, and what can still be read of one that is damaged.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "cni/state/journal.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr const char* kBoot = "11111111-2222-3333-4444-555555555555";

Route RouteTo(const char* destination, const char* gateway) {
  Route route;
  route.destination = *IpPrefix::Parse(destination);
  if (gateway != nullptr) route.gateway = IpAddress::Parse(gateway);
  route.source = IpAddress::Parse("10.100.0.10");
  route.table = 4294967295U;
  route.metric = 4294967294U;
  route.scope = gateway == nullptr ? RouteScope::kLink : RouteScope::kUniverse;
  return route;
}

AttachedDevice FirstLink() {
  AttachedDevice link;
  link.device = "0000:43:10.0";
  link.pf = "0000:43:00.0";
  link.vf = 63;
  link.rail = "rail0";
  link.pod_name = "rail0-1";
  link.before.driver = "igbvf";
  link.before.user_space = true;
  link.before.parentless = true;
  link.before.name = "enp67s16";
  link.before.mac = *MacAddress::Parse("02:00:00:00:00:01");
  link.before.link.mtu = 9000;
  link.before.up = true;
  link.before.alt_names = {"one", "an alternative name with blanks and \"quotes\""};
  link.before.link.alias = "port 7, \xc3\xa4";
  link.before.link.tx_queue_len = 1;
  link.before.link.promiscuous = true;
  link.before.link.all_multicast = true;
  link.before.settings.values = {
      {"rings.rx", "512"}, {"rules.list", ""}, {"features.wanted", "00000001ffffffff"}};
  link.rebound_for = "xdp.driver (Device or resource busy)";
  link.before.vf = VfSettings{MacAddress::Parse("02:00:00:00:00:03"),
                              VfVlan{7, 5, kVlanProto8021ad},
                              true,
                              false,
                              VfLinkState::kDisable,
                              VfRate{10, 4294967295U}};
  link.requested.vf = VfSettings{MacAddress::Parse("02:00:00:00:00:09"),
                                 VfVlan{4094, 7, kVlanProto8021ad},
                                 false,
                                 true,
                                 VfLinkState::kEnable,
                                 VfRate{1, 4294967295U}};
  link.rdma.device = "mlx5_4";
  link.rdma.soft = true;
  link.rdma.moved = true;
  link.requested.link = {4200, "of the pod", 0, false, true};
  link.requested.alt_names = {"roce0", "roce1"};
  link.requested.sysctls = {{"net/ipv4/conf/rail0/arp_filter", "1"}, {"net/core/somaxconn", "4096 8192"}};
  link.addressing.table = 4294967295U;
  link.addressing.addresses = {*IpPrefix::Parse("10.100.0.10/24"), *IpPrefix::Parse("fd00::10/64")};
  link.addressing.routes = {RouteTo("10.100.0.0/24", nullptr), RouteTo("0.0.0.0/0", "10.100.0.254")};
  link.nccl.enabled = true;
  link.rdma.gid_index = 0;
  link.rdma.uverbs = "uverbs31";
  link.nccl.traffic_class = 0;
  return link;
}

JournalEntry Entry() {
  JournalEntry entry;
  entry.key = {"rails", "c1", "net1"};
  entry.boot_id = kBoot;
  entry.phase = Phase::kDone;
  entry.netns = "/var/run/netns/cni-1";
  entry.netns_inode = 4026532999ULL;
  entry.since = 1700000000;
  entry.devices.push_back(FirstLink());
  AttachedDevice second;  // a PF, with as little as there can be
  second.device = "0000:83:00.0";
  second.pod_name = "rail1";
  entry.devices.push_back(second);
  entry.ipam_type = "host-local";
  entry.ipam_calls = {{"rail0", R"({"ipam":{"type":"host-local"},"n":"\n"})"}, {"rail1", "{}"}};
  entry.cni_path = {"/opt/cni/bin", "/usr/lib/cni"};
  entry.cni_args = {{"K8S_POD_UID", "6a5a"}, {"IgnoreUnknown", "1"}, {"EMPTY", ""}};
  entry.nccl_config_required = true;
  return entry;
}

// Fields: tests/unit/records_test.cc.
TEST(JournalEntryTest, EveryDeviceLeadsToTheEntry) {
  const TempRoot temp;
  const JournalEntry entry = Entry();
  const Journal journal(temp.root());
  ASSERT_TRUE(journal.Write(entry));
  for (const char* device : {"0000:43:10.0", "0000:83:00.0"})
    EXPECT_EQ(journal.FindByDevice(device)->value().key, entry.key) << device;
  ASSERT_TRUE(journal.Remove(entry));
  EXPECT_TRUE(FilesBelow(temp.directory() + "/run/railhead/attachments").empty());
  EXPECT_TRUE(journal.HeldDevices().empty());
}

// What RecoverJournalEntry() makes of a file; all of the entry's devices lead to it.
RecoveredEntry Recover(const std::string& text) {
  const JournalEntry entry = Entry();
  UnreadableEntry file{entry.key, "/run/railhead/attachments/c1/rails@net1.json", {}, {}};
  for (const AttachedDevice& link : entry.devices) file.devices.insert(link.device);
  file.error = {ErrorCode::kMalformed, "it cannot be read", "", 0};
  return RecoverJournalEntry(text, file);
}

// Every device is either read as it was written, or known to be lost.
void ExpectNoneForgotten(const RecoveredEntry& recovered) {
  const JournalEntry entry = Entry();
  EXPECT_EQ(recovered.entry.key, entry.key);
  EXPECT_FALSE(recovered.lost.empty());
  std::set<std::string> known = recovered.unreadable;
  for (const AttachedDevice& link : recovered.entry.devices) known.insert(link.device);
  for (const AttachedDevice& link : entry.devices) EXPECT_TRUE(known.contains(link.device)) << link.device;
}

TEST(JournalRecovery, OfAFileThatEndsAnywhere) {
  const std::string text = FormatJournalEntry(Entry()).value();
  int tried = 0;
  // The last two bytes are "}\n". Without them the text is not JSON.
  for (std::size_t size = 0; size + 2 <= text.size(); ++size) {
    SCOPED_TRACE(size);
    ExpectNoneForgotten(Recover(text.substr(0, size)));
    ++tried;
  }
  EXPECT_GT(tried, 1000);
}

// Replaces each value, one at a time, by one of each type.
TEST(JournalRecovery, OfAnEntryWithOneWrongValue) {
  const nlohmann::json whole = nlohmann::json::parse(FormatJournalEntry(Entry()).value());
  const std::vector<nlohmann::json> values = {true,      -7, 1.5, "text", "", nlohmann::json::array({7}),
                                              {{"a", 1}}};
  int refused = 0;
  const nlohmann::json flat = whole.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    for (const nlohmann::json& wrong : values) {
      nlohmann::json damaged = whole;
      damaged[nlohmann::json::json_pointer(pointer)] = wrong;
      SCOPED_TRACE(pointer + " = " + wrong.dump());
      if (ParseJournalEntry(damaged.dump(), "entry")) continue;
      ++refused;
      const RecoveredEntry recovered = Recover(damaged.dump());
      if (pointer != "/devices/0/device" && pointer != "/devices/1/device") ExpectNoneForgotten(recovered);
      // A damaged value of one device does not affect the other device.
      const bool in_first = pointer.starts_with("/devices/0/");
      const bool in_devices = pointer.starts_with("/devices/");
      ASSERT_EQ(recovered.entry.devices.size(), in_devices ? 1U : 2U);
      EXPECT_EQ(recovered.entry.devices.back().device,
                in_devices && !in_first ? "0000:43:10.0" : "0000:83:00.0");
    }
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace railhead::testing
