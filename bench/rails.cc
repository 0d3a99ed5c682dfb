#include "bench/rails.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "cni/state/attach_log.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/linux_kernel.h"

namespace railhead::bench {
namespace {

constexpr auto kCarrierLimit = std::chrono::seconds(120);
constexpr int kMany = 1000;

Result<void> CheckRail(RouteApi& pod, const RailDevice& rail, const std::vector<Rule>& rules) {
  const auto missing = [&](const std::string& what) {
    return Fail(ErrorCode::kConflict, rail.pod_name + " after ADD: " + what);
  };
  const auto link = RH_TRY(pod.FindLink(rail.pod_name));
  if (!link) return missing("it is not in the pod");
  if (!RH_TRY(pod.WaitCarrier(link->index, std::chrono::steady_clock::now() + kCarrierLimit))) {
    return missing("no carrier");
  }
  std::vector<IpPrefix> addresses;
  for (const auto& address : RH_TRY(pod.ListAddresses(link->index))) {
    if (address.address.IsV4()) addresses.push_back(address);
  }
  if (addresses.size() != 1 || addresses[0].Network() != IpPrefix::Parse(rail.Subnet())) {
    return missing("not exactly one address of " + rail.Subnet());
  }
  const auto routes = RH_TRY(pod.ListRoutes(AF_INET, 0));
  for (const auto& rule : rules) {
    if (rule.from != IpPrefix::Host(addresses[0].address)) continue;
    for (const auto& route : routes) {
      if (route.table == rule.table && route.destination == IpPrefix::Parse(kRailsRoute) &&
          route.gateway == IpAddress::Parse(rail.Gateway()) && route.link == link->index) {
        return {};
      }
    }
  }
  return missing("no rule for its address whose table has " + std::string(kRailsRoute));
}

Result<void> CheckAdded(const RailsContender& contender, const std::vector<RailDevice>& rails) {
  LinuxKernel kernel{Root()};
  const NetNs pod_ns = RH_TRY(kernel.OpenNetns(contender.netns()));
  const auto pod = RH_TRY(kernel.OpenRoute(pod_ns));
  const auto rules = RH_TRY(pod->ListRules(AF_INET));
  for (const auto& rail : rails) RH_TRY_WRAP(CheckRail(*pod, rail, rules), contender.name());
  return {};
}

Result<void> CheckDeleted(const RailsContender& contender, const std::vector<RailDevice>& rails) {
  LinuxKernel kernel{Root()};
  const NetNs pod_ns = RH_TRY(kernel.OpenNetns(contender.netns()));
  const auto pod = RH_TRY(kernel.OpenRoute(pod_ns));
  const NetNs host_ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(host_ns));
  for (const auto& rail : rails) {
    if (!RH_TRY(host->FindLink(rail.device.netdev))) {
      return Fail(ErrorCode::kConflict,
                  contender.name() + ": " + rail.device.netdev + " is not back on the host after DEL");
    }
  }
  for (const auto& rule : RH_TRY(pod->ListRules(AF_INET))) {
    if (rule.from || !rule.oif.empty()) {
      return Fail(ErrorCode::kConflict, contender.name() + ": " + rule.ToString() + " is left after DEL");
    }
  }
  return {};
}

// What railhead itself says of the ADD that has just ended.
Result<void> AddPhases(Record& record, const std::string& group, const std::string& id) {
  const auto timings = RH_TRY(ReadAttachTimings(Root()));
  if (timings.empty() || timings.back().key.container_id != id) {
    return Fail(ErrorCode::kNotFound, "the log of attach timings does not end with the ADD of " + id);
  }
  for (const auto& [phase, took] : timings.back().phases) {
    record.Add(group, "- " + phase, "ADD", "ms", static_cast<double>(took.count()) / 1000);
  }
  return {};
}

struct Turn {
  RailsContender& contender;
  std::string who;
  bool phases = false;
};

Result<void> Take(const Turn& turn, const std::string& id, const RailsSetting& setting, Record* record) {
  const auto added = RH_TRY_WRAP(turn.contender.Add(id), turn.who);
  RH_TRY(CheckAdded(turn.contender, setting.devices));
  if (record != nullptr) {
    record->AddParts(setting.group, turn.who, "ADD", added);
    if (turn.phases) RH_TRY(AddPhases(*record, setting.group, id));
  }
  const auto deleted = RH_TRY_WRAP(turn.contender.Del(id), turn.who);
  RH_TRY(CheckDeleted(turn.contender, setting.devices));
  if (record != nullptr) record->AddParts(setting.group, turn.who, "DEL", deleted);
  return {};
}

// The two directories of the journal, under other names while they are not in use.
class Shelf {
 public:
  static Result<void> Put(const std::string& name) { return Move("", "." + name); }
  static Result<void> Get(const std::string& name) { return Move("." + name, ""); }
  static void Discard(const std::string& name) {
    for (const auto& path : Paths()) {
      std::error_code ignored;
      std::filesystem::remove_all(path + "." + name, ignored);
    }
  }

 private:
  static std::vector<std::string> Paths() { return {paths::Attachments(Root()), paths::Devices(Root())}; }
  static Result<void> Move(const std::string& from, const std::string& to) {
    for (const auto& path : Paths()) {
      if (std::rename((path + from).c_str(), (path + to).c_str()) != 0) {
        return FailSys(errno, "renaming " + path + from + " to " + path + to);
      }
    }
    return {};
  }
};

// A real entry under other pods' names and devices.
Result<void> FillJournal(JournalEntry entry, int entries) {
  const Journal journal{Root()};
  for (int i = 0; i < entries; ++i) {
    char device[32];
    (void)std::snprintf(device, sizeof(device), "%04x:%02x:%02x.%d", 1 + i / 256, i % 256, i % 32, i % 8);
    entry.key.container_id = "other-" + std::to_string(i);
    entry.links.at(0).device = device;
    entry.links.at(0).vf = i;
    RH_TRY(journal.Write(entry));
  }
  return {};
}

Result<void> ShelveEntries(RailsContender& contender) {
  const char* const id = "template";
  RH_TRY_WRAP(contender.Add(id), "for a journal entry");
  const auto entry = RH_TRY(Journal{Root()}.Find({"rails", id, kIfname}));
  RH_TRY_WRAP(contender.Del(id), "for a journal entry");
  if (!entry) return Fail(ErrorCode::kNotFound, "ADD left no journal entry");
  RH_TRY(FillJournal(*entry, 1));
  RH_TRY(Shelf::Put(kOneEntry));
  RH_TRY(FillJournal(*entry, kMany));
  return Shelf::Put(kManyEntries);
}

}  // namespace

Result<void> MeasureRails(const RailsSetting& setting, Record& record) {
  RH_TRY(MakeDirectories(setting.scratch));
  const auto batch = MakeIpBatch(setting);
  const auto railhead = MakeRailhead(setting, 0);
  const auto probing = MakeRailhead(setting, -1);
  const auto chains = MakeHostDeviceChains(setting);
  std::vector<Turn> turns = {{*batch, kIpBatch}, {*railhead, kRailhead, true}};
  if (!setting.peers.empty()) {
    turns.push_back({*probing, kRailheadProbing});
    turns.push_back({*chains, kHostDevice});
  }
  for (int round = 0; round <= setting.rounds; ++round) {
    for (const auto& turn : turns) {
      const std::string id = "rails-" + std::to_string(round) + (turn.who == kRailheadProbing ? "-p" : "");
      RH_TRY(Take(turn, id, setting, round == 0 ? nullptr : &record));
    }
  }
  return {};
}

Result<void> MeasureBefore(const RailsSetting& setting, Record& record) {
  const auto now = MakeRailhead(setting, 0);
  const auto before = MakeRailheadBefore(setting);
  const Turn after_turn{*now, kRailhead};
  const Turn before_turn{*before, kRailheadBefore};
  for (int round = 0; round <= setting.rounds; ++round) {
    for (const bool first : {true, false}) {
      const Turn& turn = first == (round % 2 == 0) ? after_turn : before_turn;
      const std::string id = "rails-" + std::to_string(round) + (&turn == &before_turn ? "-b" : "");
      RH_TRY(Take(turn, id, setting, round == 0 ? nullptr : &record));
    }
  }
  return {};
}

Result<void> MeasureTenants(const RailsSetting& setting, Record& record) {
  const auto red = MakeRailheadOf(setting, "red");
  const auto blue = MakeRailheadOf(setting, "blue");
  for (int round = 0; round <= setting.rounds; ++round) {
    RailsContender& contender = round % 2 == 0 ? *red : *blue;
    for (const bool first : {true, false}) {
      const Turn turn{contender, first ? kOtherTenant : kSameTenant};
      const std::string id = "tenant-" + std::to_string(round) + (first ? "" : "-s");
      RH_TRY(Take(turn, id, setting, round == 0 ? nullptr : &record));
    }
  }
  return {};
}

Result<void> MeasureJournal(const RailsSetting& setting, Record& record) {
  RailsSetting one = setting;
  one.devices.resize(1);
  const auto contender = MakeRailhead(one, 0);
  RH_TRY(ShelveEntries(*contender));
  for (int round = 0; round <= one.rounds; ++round) {
    // Who begins changes, so that neither is always the one after the other.
    std::vector<const char*> names = {kOneEntry, kManyEntries};
    if (round % 2 != 0) std::reverse(names.begin(), names.end());
    for (const char* name : names) {
      RH_TRY(Shelf::Get(name));
      const Turn turn{*contender, name};
      RH_TRY(Take(turn, "journal-" + std::to_string(round), one, round == 0 ? nullptr : &record));
      RH_TRY(Shelf::Put(name));
    }
  }
  Shelf::Discard(kOneEntry);
  Shelf::Discard(kManyEntries);
  return {};
}

}  // namespace railhead::bench
