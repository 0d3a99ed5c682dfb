#include "tests/support/netns/soft_roce_pair.h"

#include "tests/support/eventually.h"
#include "tests/support/netns/guest_fixture.h"

namespace railhead::testing {
namespace {

constexpr const char* kLink = "roce0";

void BringUpWith(RouteApi& route, const char* address) {
  const int index = GetLink(route, kLink).index;
  Must(route.AddAddress(index, *IpPrefix::Parse(address)));
  BringUp(route, index);
}

}  // namespace

SoftRocePair::SoftRocePair() {
  AddVeth(here_, kLink, there_, kLink);
  Must(rdma_here_->AddRxe("rxe_here", kLink));
  Must(rdma_there_->AddRxe("rxe_there", kLink));
  BringUpWith(*route_here_, "10.100.0.1/24");
  BringUpWith(*route_there_, "10.100.0.2/24");
}

SoftRocePair::~SoftRocePair() {
  Must(rdma_here_->DeleteRxe("rxe_here"));
  Must(rdma_there_->DeleteRxe("rxe_there"));
}

int SoftRocePair::link() const {
  return GetLink(*route_here_, kLink).index;
}

std::optional<GidEntry> SoftRocePair::FindGid(const std::string& device, const char* address) {
  for (const GidEntry& gid : Must(Must(VerbsDevice::Open(device)).Gids()))
    if (gid.type == GidType::kRoceV2 && AddressOfGid(gid.gid) == IpAddress::Parse(address)) return gid;
  return std::nullopt;
}

GidEntry SoftRocePair::GidAt(const std::string& device, const char* address) {
  std::optional<GidEntry> found;
  EXPECT_TRUE(Eventually([&] { return (found = FindGid(device, address)).has_value(); })) << address;
  EXPECT_TRUE(Eventually([&] { return Must(Must(VerbsDevice::Open(device)).Port()).active; })) << device;
  return found.value();
}

Datagrams SoftRocePair::Open(const std::string& device, const char* address) {
  DatagramSettings settings;
  settings.gid = GidAt(device, address);
  return Must(Datagrams::Open(Must(VerbsDevice::Open(device)), settings));
}

}  // namespace railhead::testing
