#include "tests/support/netns/guest_fixture.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "netns/base/files.h"
#include "netns/base/root.h"
#include "tests/support/eventually.h"

namespace railhead::testing {
namespace {

std::string FindPfAttribute(const std::string& pf, const std::string& name) {
  return "/sys/class/net/" + pf + "/device/" + name;
}

}  // namespace

void GuestTest::SetUpTestSuite() {
  LinuxKernel kernel{Root()};
  const NetNs host = Must(kernel.HostNetns());
  auto route = Must(kernel.OpenRoute(host));
  for (const std::string pf : {"pf0", "pf1"}) {
    // igbvf gets no answer from a PF that is down.
    BringUp(*route, GetLink(*route, pf).index);
    const std::string attribute = FindPfAttribute(pf, "sriov_numvfs");
    if (Must(ReadAttribute(attribute)) != "2") Must(WriteAttribute(attribute, "2"));
  }
  if (!Eventually([&] { return Must(route->FindLinkOfDevice(kBdf)).has_value(); })) {
    Die(Error{ErrorCode::kTimeout, "no interface for VF 0 of pf0", "", 0});
  }
}

GuestTest::GuestTest() {
  pf_ = GetLink(*route_, "pf0");
  vf_ = VfLink();
  vf_before_ = SettingsOfVf();
}

GuestTest::~GuestTest() {
  EXPECT_EQ(SettingsOfVf(), vf_before_);
  EXPECT_TRUE(Eventually([&] { return Must(route_->FindLinkOfDevice(kBdf)).has_value(); }));
}

Link GuestTest::VfLink() {
  auto link = Must(route_->FindLinkOfDevice(kBdf));
  if (!link) Die(Error{ErrorCode::kNotFound, "VF 0 of pf0 has no interface", "", 0});
  return *link;
}

VfSettings GuestTest::SettingsOfVf() {
  VfSettings state = Must(route_->GetVf(pf_.index, 0)).value();
  if (state.mac == vf_.mac) state.mac = MacAddress{};
  return state;
}

void GuestTest::BringPodUp(RouteApi& pod_route, int index, const char* address) {
  LinkChange change;
  change.addr_gen_mode = AddrGenMode::kNone;
  Must(pod_route.ChangeLink(index, change));
  Must(pod_route.AddAddress(index, *IpPrefix::Parse(address)));
  BringUp(pod_route, index);
  ASSERT_TRUE(Must(pod_route.WaitCarrier(index, NetDeadline())));
}

}  // namespace railhead::testing
