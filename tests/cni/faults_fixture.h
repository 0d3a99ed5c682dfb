// Calls of the plugin that fail, or are killed, at every call of the kernel.
#pragma once

#include <string>
#include <utility>

#include "tests/cni/plugin_fixture.h"

namespace railhead::testing {

class FaultsFixture : public PluginFixture {
 protected:
  // How many calls one successful ADD (or the DEL after it) makes. The world is as
  // before afterwards.
  std::pair<int, int> CountCalls(const Call& call);

  // ADD fails at every call: it says so, and nothing is left behind.
  void FailAddEverywhere(const Call& call, FakeKernel::Fault fault);
  // DEL fails at every call; a second DEL completes.
  void FailDelEverywhere(const Call& call, FakeKernel::Fault fault);

  // Runs `call` until the nth call of the kernel and leaves it there, as SIGKILL
  // would. false: it finished before.
  bool Kill(const Call& call, int nth);
};

}  // namespace railhead::testing
