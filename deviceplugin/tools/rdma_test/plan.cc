#include "deviceplugin/tools/rdma_test/plan.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <memory>
#include <set>
#include <tuple>
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

namespace {

constexpr char kChooseHint[] = "name it: END@DEVICE";

struct InterfaceFreer {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

std::optional<IpAddress> AddressOf(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    return IpAddress::FromBytes(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr, sizeof(in_addr));
  }
  if (address->sa_family == AF_INET6) {
    return IpAddress::FromBytes(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, sizeof(in6_addr));
  }
  return std::nullopt;
}

int BitsSet(const IpAddress& mask) {
  int bits = 0;
  for (std::size_t i = 0; i < mask.Size(); ++i) bits += std::popcount(mask.Data()[i]);
  return bits;
}

// Addresses of this network namespace, with the lengths of their subnets.
Result<std::vector<IpPrefix>> OwnAddresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return FailSys(errno, "listing the addresses of the network namespace");
  const std::unique_ptr<ifaddrs, InterfaceFreer> list(first);
  std::vector<IpPrefix> addresses;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    const auto address = AddressOf(one->ifa_addr);
    const auto mask = AddressOf(one->ifa_netmask);
    if (address && mask) addresses.push_back({*address, BitsSet(*mask)});
  }
  return addresses;
}

Result<std::vector<Candidate>> CandidatesOf(const VerbsDevice& device, const std::vector<IpPrefix>& own) {
  std::vector<Candidate> candidates;
  for (const GidEntry& gid : RH_TRY(device.Gids())) {
    const IpAddress address = AddressOfGid(gid.gid);
    if (gid.type != GidType::kRoceV2 || address.IsLinkLocal()) continue;
    const auto found = std::ranges::find(own, address, &IpPrefix::address);
    if (found != own.end()) candidates.push_back({device.name(), gid, *found});
  }
  return candidates;
}

// The candidates of one device, or of every device that can be opened.
Result<std::vector<Candidate>> Candidates(const std::string& device) {
  const auto own = RH_TRY(OwnAddresses());
  if (!device.empty()) {
    const VerbsDevice opened = RH_TRY(VerbsDevice::Open(device));
    return CandidatesOf(opened, own);
  }
  std::vector<Candidate> all;
  for (const std::string& name : RH_TRY(VerbsDevice::List())) {
    const auto opened = VerbsDevice::Open(name);
    if (!opened) continue;  // another pod's device, behind a device cgroup
    const auto candidates = RH_TRY(CandidatesOf(*opened, own));
    all.insert(all.end(), candidates.begin(), candidates.end());
  }
  return all;
}

Result<void> CheckPort(const VerbsDevice& device) {
  const VerbsPort port = RH_TRY(device.Port());
  if (!port.ethernet) {
    return Fail(ErrorCode::kUnsupported, "port 1 of RDMA device " + device.name() + " is not Ethernet",
                "this test is for RoCE");
  }
  if (port.active) return {};
  return Fail(ErrorCode::kUnavailable,
              "port 1 of RDMA device " + device.name() + " is in state " + port.state,
              "its interface is down or has no carrier: look at `ip link` there and at `railctl health`");
}

Result<void> CheckType(const VerbsDevice& device, const GidEntry& gid) {
  if (gid.type == GidType::kRoceV2) return {};
  return Fail(ErrorCode::kInvalid,
              "the GID at index " + std::to_string(gid.index) + " of RDMA device " + device.name() +
                  " is not RoCE v2",
              "choose another --gid-index: NCCL uses RoCE v2");
}

}  // namespace

Result<Candidate> PickCandidate(const std::vector<Candidate>& candidates,
                                const std::optional<IpAddress>& towards) {
  std::vector<Candidate> fit = candidates;
  if (towards) {
    std::vector<Candidate> near;
    std::copy_if(fit.begin(), fit.end(), std::back_inserter(near),
                 [&](const Candidate& one) { return one.address.Contains(*towards); });
    if (!near.empty()) {
      fit = near;
    } else {
      std::erase_if(fit, [&](const Candidate& one) { return one.address.address.IsV4() != towards->IsV4(); });
    }
  }
  const auto order = [](const Candidate& one) {
    return std::make_tuple(one.address.address.IsV6(), one.device, one.gid.index);
  };
  std::ranges::sort(fit, [&](const auto& a, const auto& b) { return order(a) < order(b); });
  if (fit.empty()) {
    return Fail(ErrorCode::kNotFound,
                "no RDMA device there has a RoCE v2 GID of an address that its network namespace has" +
                    (towards ? " and that fits " + towards->ToString() : std::string()),
                kChooseHint);
  }
  std::set<std::string> devices;
  for (const Candidate& one : fit) devices.insert(one.device);
  const bool in_its_subnet = towards && fit.front().address.Contains(*towards);
  if (devices.size() > 1 && !in_its_subnet) {
    return Fail(ErrorCode::kConflict,
                "several RDMA devices may be meant: " + Join({devices.begin(), devices.end()}, ", "),
                kChooseHint);
  }
  return fit.front();
}

Result<ChosenEndpoint> ChooseEndpoint(const RailEnd& wishes, const std::optional<IpAddress>& towards) {
  std::string name = wishes.device;
  std::optional<int> index = wishes.gid_index;
  if (!name.empty()) {
    // Check the port first: if it is down, the other problems follow from that.
    const VerbsDevice device = RH_TRY(VerbsDevice::Open(name));
    RH_TRY(CheckPort(device));
  }
  if (name.empty() || !index) {
    const auto candidates = RH_TRY(Candidates(name));
    const Candidate picked = RH_TRY(PickCandidate(candidates, towards));
    name = picked.device;
    if (!index) index = picked.gid.index;
  }
  VerbsDevice device = RH_TRY(VerbsDevice::Open(name));
  RH_TRY(CheckPort(device));
  const GidEntry gid = RH_TRY(device.Gid(*index));
  RH_TRY(CheckType(device, gid));
  return ChosenEndpoint{std::move(device), gid};
}

}  // namespace railhead::rdma_test
