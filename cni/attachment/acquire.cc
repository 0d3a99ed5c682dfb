#include "cni/attachment/acquire.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cni/attachment/devices.h"
#include "cni/attachment/release.h"
#include "cni/fabric/fabric.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/poll_pause.h"
#include "netns/base/unique_fd.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {
namespace {

// Who does not want to wait for a DEL still has to wait for those who only look.
constexpr auto kShortestLockWait = std::chrono::milliseconds(500);

// Any other error does not say that a pod is dead.
bool IsGone(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalid;
}

class Claim {
 public:
  Claim(const Root& root, Kernel& kernel, const Journal& journal, const CniRequest& request)
      : root_(root),
        kernel_(kernel),
        journal_(journal),
        request_(request),
        key_{request.network, request.container_id, request.ifname} {}

  // Those that hold one of the devices, and this attachment's own of an ADD that was
  // killed; each once.
  Result<std::vector<JournalEntry>> Earlier(const std::set<std::string>& devices) {
    std::map<AttachmentKey, JournalEntry> found;
    if (auto own = RH_TRY(journal_.Find(key_)); own) {
      if (own->phase == Phase::kDone && !own->devices.empty()) {
        return Fail(ErrorCode::kExists,
                    "container " + key_.container_id + " has " + key_.ifname + " of network " + key_.network +
                        " already",
                    "DEL it before another ADD");
      }
      found.emplace(key_, std::move(*own));
    }
    for (const auto& device : devices) {
      if (auto entry = RH_TRY(journal_.FindByDevice(device)); entry)
        found.emplace(entry->key, std::move(*entry));
    }
    std::vector<JournalEntry> entries;
    entries.reserve(found.size());
    for (auto& [key, entry] : found) entries.push_back(std::move(entry));
    return entries;
  }

  // Whether the device is still its pod's. A planned entry is a killed ADD: its
  // process would hold the lock.
  Result<void> RefuseLiving(const std::set<std::string>& devices, const JournalEntry& entry) {
    if (entry.phase != Phase::kDone) return {};
    const auto ns = kernel_.OpenNetns(entry.netns);
    if (!ns && !IsGone(ns.error())) {
      return Fail(
          Wrap(ns.error(), "looking whether the pod of container " + entry.key.container_id + " lives"));
    }
    if (!ns || ns->inode() != entry.netns_inode) return {};
    for (const AttachedDevice& device : entry.devices) {
      if (!devices.contains(device.device) && !devices.contains(device.KubeletId())) continue;
      return Fail(ErrorCode::kBusy,
                  "device " + device.KubeletId() + " is in the pod of container " + entry.key.container_id +
                      " as " + device.pod_name,
                  "its DEL has not come yet");
    }
    return {};
  }

  // Without an entry a device can be away too: in a namespace that is being taken down.
  Result<void> RefuseAway(const DeviceChoice& choice) {
    const NetNs host_ns = RH_TRY(kernel_.HostNetns());
    const auto host = RH_TRY(kernel_.OpenRoute(host_ns));
    for (const auto& address : choice.devices) {
      const PciDevice device = RH_TRY(FindNic(root_, address));
      if (!IsForUserSpace(device)) RH_TRY(FindHostLink(root_, *host, device));
    }
    return {};
  }

  // Does not wait for a device that is on its way: the locks are held here.
  Result<void> Finish(const std::vector<JournalEntry>& earlier) {
    for (const auto& entry : earlier) {
      RH_TRY_WRAP(
          ReleaseAttachment(root_, kernel_, journal_, request_, entry, {std::chrono::steady_clock::now()}),
          "finishing the earlier attachment " + entry.key.ToString());
    }
    return {};
  }

 private:
  const Root& root_;
  Kernel& kernel_;
  const Journal& journal_;
  const CniRequest& request_;
  AttachmentKey key_;
};

// A DEL that waits for its namespace holds the lock all the while.
Result<DeviceLocks> LockUntil(const Root& root, const std::set<std::string>& devices, Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  auto locks = DeviceLocks::Acquire(root, devices, std::max(left, kShortestLockWait));
  if (locks || locks.error().code != ErrorCode::kTimeout) return locks;
  return Fail(ErrorCode::kBusy, locks.error().message,
              "the DEL of its last pod is not over yet: this ADD will be tried again");
}

// One attempt. An earlier attachment can have further devices, which have to be
// locked with ours, in order: then all is let go and locked again.
Result<DeviceLocks> TryOnce(const Root& root, Claim& claim, const DeviceChoice& choice,
                            const std::set<std::string>& devices, Deadline deadline) {
  std::set<std::string> wanted = devices;
  for (;;) {
    DeviceLocks locks = RH_TRY(LockUntil(root, wanted, deadline));
    const auto earlier = RH_TRY(claim.Earlier(devices));
    std::set<std::string> needed = devices;
    for (const auto& entry : earlier) {
      RH_TRY(claim.RefuseLiving(devices, entry));
      needed.merge(DevicesOf(entry));
    }
    if (!std::ranges::includes(wanted, needed)) {
      wanted = std::move(needed);
      continue;
    }
    RH_TRY(claim.Finish(earlier));
    RH_TRY(claim.RefuseAway(choice));
    return locks;
  }
}

}  // namespace

Result<DeviceLocks> ClaimDevices(const Root& root, Kernel& kernel, const Journal& journal,
                                 const CniRequest& request, const DeviceChoice& choice, Deadline deadline) {
  Claim claim(root, kernel, journal, request);
  std::set<std::string> devices;
  for (const auto& device : choice.devices) devices.insert(device.ToString());
  // A slot can be in one sandbox at a time, like a device.
  for (const auto& [device, slot] : choice.slots) devices.insert(slot);
  for (PollPause pause;;) {
    auto locks = TryOnce(root, claim, choice, devices, deadline);
    const bool last = std::chrono::steady_clock::now() >= deadline;
    if (locks || locks.error().code != ErrorCode::kBusy || last) return locks;
    std::this_thread::sleep_for(pause.Next());
  }
}

namespace {

using Station = std::pair<MacAddress, bool>;  // and whether IPv4

}  // namespace

ConflictVerdict JudgeConflicts(const std::vector<AddressConflict>& found,
                               const std::vector<RivalClaim>& earlier, std::chrono::milliseconds now) {
  std::map<Station, std::set<IpAddress>> claimed;
  std::set<std::pair<MacAddress, IpAddress>> confirmed;
  for (const RivalClaim& claim : earlier) {
    const auto age = now - claim.boottime;
    if (age.count() < 0 || age > kClaimCounts) continue;
    claimed[{claim.source, claim.address.IsV4()}].insert(claim.address);
    if (age >= kClaimConfirms) confirmed.emplace(claim.source, claim.address);
  }
  for (const AddressConflict& one : found)
    claimed[{one.source, one.claim.address.IsV4()}].insert(one.claim.address);
  ConflictVerdict verdict;
  for (const AddressConflict& one : found) {
    const IpAddress& address = one.claim.address;
    if (claimed[{one.source, address.IsV4()}].size() > kMostAddressesOfStation) {
      verdict.ignored.push_back(one);
      continue;
    }
    verdict.conflicts.push_back(one);
    if (confirmed.contains({one.source, address})) verdict.confirmed.push_back(address);
  }
  return verdict;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit{10};

tl::unexpected<Error> NoAnswer(const std::string& path, const std::string& why) {
  return Fail(ErrorCode::kBusy, "asking railheadd at " + path + " for the devices of the pod's slots: " + why,
              "a pool with \"binding\": \"late\" needs railheadd on the node: see its log");
}

Result<UniqueFd> Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return NoAnswer(path, "the path is too long for a socket");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return FailSys(errno, "opening a socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return NoAnswer(path, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): one thread
  // Its answer says which device is moved.
  if (!IsPeerTrusted(fd.get())) return NoAnswer(path, "who listens there is not root");
  return fd;
}

bool Await(int fd, short events, Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  pollfd polled{fd, events, 0};
  return ::poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) > 0;
}

Result<void> SendLine(const std::string& path, int fd, std::string_view text, Clock::time_point until) {
  while (!text.empty()) {
    if (!Await(fd, POLLOUT, until)) return NoAnswer(path, "it does not read");
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return NoAnswer(path, "it has closed the connection");
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::string> ReadLine(const std::string& path, int fd, Clock::time_point until) {
  std::string line;
  std::array<char, 4096> buffer{};
  while (line.find('\n') == std::string::npos) {
    if (!Await(fd, POLLIN, until))
      return NoAnswer(path, "no answer within " + std::to_string(kLimit.count()) + " s");
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return NoAnswer(path, "it has closed the connection without an answer");
    line.append(buffer.data(), static_cast<std::size_t>(n));
    if (line.size() > kMaxBindLine) return NoAnswer(path, "its answer has no end");
  }
  return line.substr(0, line.find('\n'));
}

}  // namespace

Result<Bindings> BindSlots(const Root& root, const BindRequest& request) {
  const std::string path = paths::BindSocket(root);
  const auto until = Clock::now() + kLimit;
  const UniqueFd fd = RH_TRY(Connect(path));
  const std::string line = RH_TRY(FormatBindRequest(request));
  RH_TRY(SendLine(path, fd.get(), line, until));
  return ParseBindAnswer(RH_TRY(ReadLine(path, fd.get(), until)), request);
}

namespace {

struct SharedMac {
  std::array<std::uint8_t, 5> prefix;
  std::size_t length;
  const char* protocol;
};

// RFC 9568 7.3 (VRRP, and with it CARP and anycast gateways), and what Cisco's routers use for HSRP and GLBP.
constexpr std::array<SharedMac, 5> kRouters = {{{{0x00, 0x00, 0x5e, 0x00, 0x01}, 5, "VRRP"},
                                                {{0x00, 0x00, 0x5e, 0x00, 0x02}, 5, "VRRP"},
                                                {{0x00, 0x00, 0x0c, 0x07, 0xac}, 5, "HSRP"},
                                                {{0x00, 0x00, 0x0c, 0x9f, 0x00}, 4, "HSRP"},
                                                {{0x00, 0x07, 0xb4, 0x00, 0x00}, 4, "GLBP"}}};

class Owners {
 public:
  Owners(const Root& root, RouteApi& host, const DevicePlan& plan)
      : root_(root), host_(host), plan_(plan), mac_(*plan.record.wanted.vf.mac) {}

  Result<void> RefuseRouters() {
    for (const SharedMac& router : kRouters) {
      if (std::equal(router.prefix.begin(), router.prefix.begin() + router.length, mac_.bytes.begin()))
        return Refuse(std::string("routers that share an address by ") + router.protocol);
    }
    return {};
  }

  Result<void> RefuseNode() {
    for (const Link& other : RH_TRY(host_.ListLinks())) {
      if (other.mac == mac_ && other.index != plan_.link.index) return Refuse("interface " + other.name);
    }
    for (const PciDevice& pf : RH_TRY(ListNetworkPfs(root_))) {
      const auto name = RH_TRY(UplinkNetdev(root_, pf.address));
      const auto uplink = name ? RH_TRY(host_.FindLink(*name)) : std::nullopt;
      for (int vf = 0; uplink && vf < pf.sriov_numvfs; ++vf) {
        if (uplink->index == plan_.pf_index && plan_.record.vf == vf) continue;
        const auto state = RH_TRY(host_.GetVf(uplink->index, vf));
        if (state && state->mac == mac_) return Refuse("VF " + std::to_string(vf) + " of " + uplink->name);
      }
    }
    return {};
  }

  Result<void> RefuseStations(const Fabric& fabric) {
    std::vector<std::string> nodes;
    nodes.push_back(RH_TRY(NodeName(root_)));
    for (const auto& [node, index] : fabric.nodes) nodes.push_back(node);
    for (const Rail& rail : fabric.rails) {
      for (const std::string& node : nodes) {
        if (StationMac(node, rail.name) != mac_) continue;
        return Refuse("the probing station of node " + node + " on rail " + rail.name);
      }
    }
    return {};
  }

  // true: somebody on this node knows who answers for the gateway, and it is another MAC.
  Result<bool> RefuseGateway(const IpAddress& gateway) {
    bool known = false;
    for (const auto& [mac, where] : RH_TRY(AnswersFor(gateway))) {
      if (mac == mac_) return Fail(Refusal("the gateway " + gateway.ToString() + ", as " + where + " knows"));
      known = true;
    }
    return known;
  }

 private:
  [[nodiscard]] Error Refusal(const std::string& owner) const {
    return {ErrorCode::kConflict, "mac " + mac_.ToString() + " is that of " + owner,
            "ask for another one, or for none: every VF has its own", 0};
  }
  [[nodiscard]] Result<void> Refuse(const std::string& owner) const { return Fail(Refusal(owner)); }

  Result<std::map<MacAddress, std::string>> AnswersFor(const IpAddress& gateway) {
    std::map<MacAddress, std::string> found = ReportedMacs(gateway);
    for (const Link& link : RH_TRY(host_.ListLinks())) {
      for (const Neighbour& neighbour : RH_TRY(host_.ListNeighbours(link.index))) {
        if (neighbour.address == gateway && !neighbour.mac.IsZero()) found.emplace(neighbour.mac, "the host");
      }
    }
    return found;
  }

  // What railheadd's station has learnt (reach.json, deviceplugin/services/reachability/reach_report.h). A
  // report that cannot be read says nothing.
  [[nodiscard]] std::map<MacAddress, std::string> ReportedMacs(const IpAddress& gateway) const {
    std::map<MacAddress, std::string> found;
    const auto text = ReadFile(root_.Path(paths::kReachReport));
    if (!text || !*text) return found;
    const auto report = nlohmann::json::parse(**text, nullptr, false);
    if (!report.is_object() || !report.contains("rails")) return found;
    for (const auto& rail : report["rails"]) {
      const auto at = rail.is_object() ? rail.find("gateway") : rail.end();
      if (at == rail.end() || !at->is_object()) continue;
      const auto mac = MacAddress::Parse(at->value("mac", std::string()));
      if (mac && at->value("address", std::string()) == gateway.ToString())
        found.emplace(*mac, "railheadd's station");
    }
    return found;
  }

  const Root& root_;
  RouteApi& host_;
  const DevicePlan& plan_;
  MacAddress mac_;
};

}  // namespace

Result<void> RefuseMacsOfOthers(const Root& root, RouteApi& host, const std::optional<Fabric>& fabric,
                                AttachPlan& plan) {
  for (const DevicePlan& device : plan.devices) {
    if (!device.record.wanted.vf.mac) continue;
    Owners owners(root, host, device);
    RH_TRY(owners.RefuseRouters());
    RH_TRY(owners.RefuseNode());
    if (fabric) RH_TRY(owners.RefuseStations(*fabric));
    const auto gateway = plan.config.gateway ? plan.config.gateway
                         : device.rail       ? device.rail->gateway
                                             : std::nullopt;
    if (!gateway) continue;
    const bool known = RH_TRY(owners.RefuseGateway(*gateway));
    plan.meet_gateways = plan.meet_gateways || (plan.for_pod && !known && !device.record.before.user_space);
  }
  return {};
}

}  // namespace railhead::attachment
