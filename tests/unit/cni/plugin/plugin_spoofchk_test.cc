// A rail's spoofchk: on for pods where the driver and the VF's MAC allow it, as before on the host.
#include <cerrno>

#include "cni/protocol/cni_result.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

constexpr const char* kMac = "02:aa:00:00:00:07";

class PluginSpoofchkTest : public PluginFixture {
 protected:
  // The VF as its driver has it before ADD.
  void Has(std::optional<bool> spoofchk, const char* mac) {
    const FakeFunction& pf = *kernel_.state().Function("0000:43:00.0");
    VfSettings settings;
    settings.spoofchk = spoofchk.value_or(false);
    settings.mac = mac == nullptr ? MacAddress{} : *MacAddress::Parse(mac);
    ASSERT_EQ(kernel_.state().SetVf(pf, 0, settings), 0);
  }
  // ADD, CHECK and DEL succeed; what the VF has in between.
  std::optional<bool> InPod(const std::string& fields = "") {
    const Call call{.config = Usual() + fields};
    const auto before = World();
    const auto added = Add(call);
    if (!added) {
      ADD_FAILURE() << Describe(added.error());
      return std::nullopt;
    }
    const auto spoofchk = Vf(0).spoofchk;
    const auto checked = Check(call);
    EXPECT_TRUE(checked) << Describe(checked.error());
    EXPECT_TRUE(Del(call));
    EXPECT_EQ(ChangedSince(before), "");
    return spoofchk;
  }
};

TEST_F(PluginSpoofchkTest, TheRailDecides) {
  for (const bool rail : {true, false}) {
    WriteFabric(rail ? "" : R"(,"spoofchk":false)");
    for (const bool host : {true, false}) {
      Has(host, kMac);
      EXPECT_EQ(InPod(), rail) << host;
    }
  }
}

// A VF could send nothing: some NICs compare with the MAC that the PF has given it.
TEST_F(PluginSpoofchkTest, IsNotSwitchedOnWithoutAMacOfThePfs) {
  Has(false, nullptr);
  EXPECT_EQ(InPod(), false);
  permissions_ = R"(,"allow":["mac"])";
  WriteFabric();
  EXPECT_EQ(InPod(R"(,"mac":"02:aa:00:00:00:08")"), true) << "ADD gives it one";
}

TEST_F(PluginSpoofchkTest, ANetworkNeedsAPermissionForAnother) {
  Has(true, kMac);
  const auto before = World();
  const Call call{.config = Usual() + R"(,"spoofchk":"off")", .args = "K8S_POD_NAMESPACE=a;K8S_POD_NAME=b"};
  const auto refused = Add(call);
  ASSERT_FALSE(refused);
  EXPECT_EQ(CniCodeOf(refused.error().code), kCniPermission) << Describe(refused.error());
  EXPECT_EQ(ChangedSince(before), "");
  permissions_ = R"(,"devices":"any","allow":["spoofchk"])";
  WriteFabric();
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(Vf(0).spoofchk, false);
}

// Drivers that cannot, or not in this mode of the NIC's switch; and a fault, which is not one of these.
TEST_F(PluginSpoofchkTest, ADriverThatRefusesItStopsNoPod) {
  Has(false, kMac);
  for (const int error : {EOPNOTSUPP, EINVAL, EPERM}) {
    kernel_.FailEvery("SetVf", error, "spoofchk");
    EXPECT_EQ(InPod(), false) << error;
    EXPECT_FALSE(Add({.config = Usual() + R"(,"spoofchk":"on")"})) << "a network insists";
  }
  kernel_.FailEvery("SetVf", EIO, "spoofchk");
  const auto before = World();
  EXPECT_FALSE(Add({.config = Usual()}));
  EXPECT_EQ(ChangedSince(before), "");
}

}  // namespace
}  // namespace railhead::testing
