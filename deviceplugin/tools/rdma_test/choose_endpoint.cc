#include "deviceplugin/tools/rdma_test/choose_endpoint.h"

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
