#include "tests/unit/cni/attachment/restore_fixture.h"

#include "netns/base/text.h"
#include "tests/support/fake_kernel/random_settings.h"

namespace railhead::testing {

void RestoreFixture::MakeNics() {
  vfs_.push_back(kernel_.AddPf(
      {.address = "0000:43:00.0", .netdev = "pf0", .driver = {.settings = AllSettings()}}, {.count = 2}));
}

void RestoreIgbvfFixture::MakeNics() {
  vfs_.push_back(kernel_.AddPf({.address = "0000:43:00.0",
                                .netdev = "pf0",
                                .driver = {.name = "igbvf",
                                           .min_tx_rate = false,
                                           .link_state = false,
                                           .s_vlan = false,
                                           .mac_at_bind = true,
                                           .bind_name = "eth",
                                           .settings = AllSettings()}},
                               {.count = 2}));
}

void RestoreFixture::SetUp() {
  FaultsFixture::SetUp();
  // As operators do it; a VF without one has another MAC after each rebind.
  for (FakeFunction& function : kernel_.state().functions) {
    if (function.state) function.state->mac = kernel_.state().OfFunction(function.bdf)->link.mac;
  }
  call_ = {.config = Usual()};
}

FakeNetdev& RestoreFixture::Nic() {
  return Nic(vfs_[0][0]);
}

FakeNetdev& RestoreFixture::Nic(const std::string& bdf) {
  return *kernel_.state().OfFunction(bdf);
}

void RestoreFixture::Change(const DeviceField& field, std::mt19937& random) {
  std::string& value = Setting(std::string(field.name));
  value = AnotherValue(field, value, random);
}

int RestoreFixture::Rebinds() const {
  int rebinds = 0;
  for (const std::string& line : Split(kernel_.Log(), '\n')) {
    if (line.find("RebindDriver ") != std::string::npos) ++rebinds;
  }
  return rebinds;
}

}  // namespace railhead::testing
