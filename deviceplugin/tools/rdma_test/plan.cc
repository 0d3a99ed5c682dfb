#include "deviceplugin/tools/rdma_test/plan.h"

#include <arpa/inet.h>
#include <ifaddrs.h>

#include <algorithm>
#include <utility>

#include "deviceplugin/support/http/http_address.h"
#include "netns/base/text.h"

namespace railhead::rdma_test {
namespace {

constexpr char kFormsHint[] =
    "an end is `host`, a network namespace's path, a container id, NAMESPACE/NAME of a pod, or ADDRESS:PORT";

void AddRails(const JournalEntry& entry, TestEnd* end) {
  for (const AttachedDevice& link : entry.devices) {
    if (link.rdma.device.empty()) continue;
    RailEnd rail{
        link.rail,   link.rdma.device, link.rdma.gid_index, link.nccl.traffic_class, link.nccl.service_level,
        std::nullopt};
    if (!link.addressing.addresses.empty()) rail.address = link.addressing.addresses.front().address;
    end->rails.push_back(std::move(rail));
  }
}

// All attachments of the sandbox. Only finished ones: others are being made or removed.
Result<void> FillFromSandbox(const std::vector<JournalEntry>& journal, TestEnd* end) {
  for (const JournalEntry& entry : journal) {
    if (entry.key.container_id != end->name || entry.phase != Phase::kDone) continue;
    AddRails(entry, end);
    end->netns = entry.netns;
  }
  if (!end->netns.empty()) return {};
  return Fail(ErrorCode::kNotFound, "no attachment of container " + end->name + " is finished",
              "its ADD or DEL still runs, or it has none: see railctl journal list");
}

// The rails that have a name.
std::vector<std::string> RailsOf(const TestEnd& end) {
  std::vector<std::string> names;
  for (const RailEnd& rail : end.rails) {
    if (!rail.rail.empty() && !Contains(names, rail.rail)) {
      names.push_back(rail.rail);
    }
  }
  return names;
}

// If both ends have rails: the common ones. If one end has rails: its own. Otherwise one test, of the
// requested rail.
Result<std::vector<std::string>> CommonRails(const TestEnd& from, const TestEnd& to,
                                             const std::string& only) {
  const std::vector<std::string> ours = RailsOf(from);
  const std::vector<std::string> theirs = RailsOf(to);
  std::vector<std::string> rails = ours.empty() ? theirs : ours;
  if (rails.empty()) return std::vector<std::string>{only};
  std::erase_if(rails, [&](const std::string& rail) {
    const bool missing = !theirs.empty() && !Contains(theirs, rail);
    return missing || (!only.empty() && rail != only);
  });
  if (!rails.empty()) return rails;
  return Fail(ErrorCode::kInvalid,
              from.name + " and " + to.name + " have no rail in common" +
                  (only.empty() ? std::string() : " that is called " + only),
              "the rails of a pod are in its journal entry below /run/railhead/attachments");
}

RailEnd Overridden(RailEnd rail, const PlanOptions& options) {
  if (!options.device.empty() && options.device != rail.device) {
    // The index and the address belong to the other device.
    rail.device = options.device;
    rail.gid_index.reset();
    rail.address.reset();
  }
  if (options.gid_index) rail.gid_index = options.gid_index;
  if (options.traffic_class) rail.traffic_class = options.traffic_class;
  if (options.service_level) rail.service_level = options.service_level;
  return rail;
}

RailEnd FirstOf(const TestEnd& end, const std::string& rail) {
  const auto found = std::ranges::find(end.rails, rail, &RailEnd::rail);
  if (found != end.rails.end()) return *found;
  RailEnd named;
  // "END@DEVICE" of an end with unknown rails.
  if (!end.rails.empty()) named = end.rails.front();
  named.rail = rail;
  return named;
}

}  // namespace

Result<TestEnd> ResolveEnd(const std::string& said, const std::vector<JournalEntry>& journal,
                           std::optional<std::uint64_t> netns_inode) {
  const std::size_t at = said.rfind('@');
  TestEnd end;
  end.name = said.substr(0, at);
  const std::string device = at == std::string::npos ? std::string() : said.substr(at + 1);
  if (end.name.empty() || (at != std::string::npos && device.empty())) {
    return Fail(ErrorCode::kInvalid, "\"" + said + "\" is not an end of a test", kFormsHint);
  }
  if (end.name.front() == '/') {
    end.netns = end.name;
    for (const JournalEntry& entry : journal) {
      const bool same = netns_inode ? entry.netns_inode == *netns_inode : entry.netns == end.netns;
      if (same && entry.phase == Phase::kDone) AddRails(entry, &end);
    }
  } else if (http::ParseHttpAddress(end.name)) {
    if (!device.empty()) {
      return Fail(ErrorCode::kInvalid, "\"" + said + "\": the device of another node's end is chosen there",
                  "say @DEVICE behind the end that --listen has");
    }
    end.remote = end.name;
  } else if (end.name != "host") {
    RH_TRY(FillFromSandbox(journal, &end));
  }
  if (device.empty()) return end;
  const auto known = std::ranges::find(end.rails, device, &RailEnd::device);
  RailEnd only;
  only.device = device;
  if (known != end.rails.end()) only = *known;
  end.rails = {only};
  end.name = said;
  return end;
}

Result<std::vector<PlannedTest>> PlanTests(const std::vector<TestEnd>& ends, const PlanOptions& options) {
  const auto local = std::ranges::count_if(ends, [](const TestEnd& end) { return end.remote.empty(); });
  if (ends.size() < 2) return Fail(ErrorCode::kInvalid, "a test has two ends at least", kFormsHint);
  if (!options.device.empty() && local > 1) {
    return Fail(ErrorCode::kInvalid,
                "--device is for one end on this node; there are " + std::to_string(local), "say END@DEVICE");
  }
  std::vector<PlannedTest> tests;
  const auto add = [&](std::size_t from, std::size_t to) -> Result<void> {
    for (const std::string& rail : RH_TRY(CommonRails(ends[from], ends[to], options.rail))) {
      PlannedTest test{from, to, Overridden(FirstOf(ends[from], rail), options), FirstOf(ends[to], rail)};
      if (ends[to].remote.empty()) test.to_rail = Overridden(test.to_rail, options);
      tests.push_back(std::move(test));
    }
    if (tests.size() <= kMaxTests) return {};
    return Fail(ErrorCode::kInvalid, "these are more than " + std::to_string(kMaxTests) + " tests",
                "choose one --rail, or fewer ends");
  };
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (std::size_t j = i + 1; j < ends.size(); ++j) {
      if (ends[i].name == ends[j].name) {
        return Fail(ErrorCode::kInvalid, ends[i].name + " is there twice", "name two devices: END@DEVICE");
      }
      if (!ends[i].remote.empty() && !ends[j].remote.empty()) {
        return Fail(ErrorCode::kInvalid, ends[i].name + " and " + ends[j].name + " are both on other nodes",
                    "start the test on one of these nodes");
      }
      const bool from_first = ends[i].remote.empty();
      RH_TRY(add(from_first ? i : j, from_first ? j : i));
      if (options.both_ways && ends[j].remote.empty() && from_first) RH_TRY(add(j, i));
    }
  }
  return tests;
}

Result<RailEnd> RailOf(const TestEnd& end, const std::string& rail, const PlanOptions& options) {
  if (end.rails.empty()) return Overridden({}, options);
  const bool named = Contains(end.rails, rail, &RailEnd::rail);
  if (named || end.rails.size() == 1) return Overridden(FirstOf(end, rail), options);
  return Fail(ErrorCode::kNotFound,
              end.name + " has no rail \"" + rail + "\", only " + Join(RailsOf(end), ", "),
              "choose one with --rail");
}

}  // namespace railhead::rdma_test
