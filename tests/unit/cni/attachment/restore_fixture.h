// A node whose NICs have every setting that there is, and a pod that changes them.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/plugin/faults_fixture.h"

namespace railhead::testing {

class RestoreFixture : public FaultsFixture {
 protected:
  void MakeNics() override;
  void SetUp() override;

  FakeNetdev& Nic();
  FakeNetdev& Nic(const std::string& bdf);
  std::string& Setting(const std::string& name) { return Nic().device.values[name]; }
  // As the pod does it: past the driver's checks, so that any state occurs.
  void Change(const DeviceField& field, std::mt19937& random);

  // Since the last ClearLog().
  [[nodiscard]] int Rebinds() const;
  [[nodiscard]] std::string AttachLog() const { return File("/run/railhead/attach.log"); }

  Call call_;
};

// The same with a driver that takes its MAC when it binds, and gives its netdev another name then.
class RestoreIgbvfFixture : public RestoreFixture {
 protected:
  void MakeNics() override;
};

}  // namespace railhead::testing
