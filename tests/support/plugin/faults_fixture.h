// Calls of the plugin that fail, or are killed, at every call of the kernel.
#pragma once

#include <string>
#include <utility>

#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {

class FaultsFixture : public PluginFixture {
 protected:
  // How many calls of the kernel one successful ADD, or the DEL after it, makes. The world is as before
  // afterwards. The test fails when there are fewer than `least`: a sweep over them would show less than it
  // says.
  int CountAdd(const Call& call, int least) { return CountCalls(call, least, 0).first; }
  int CountDel(const Call& call, int least) { return CountCalls(call, 0, least).second; }

  // ADD fails at every call, of which there are `least`: it says so, and nothing is left behind.
  void FailAddEverywhere(const Call& call, FakeKernel::Fault fault, int least);
  // DEL fails at every call, of which there are `least`; a second DEL completes.
  void FailDelEverywhere(const Call& call, FakeKernel::Fault fault, int least);

  // Runs `call` until the nth call of the kernel and leaves it there, as SIGKILL
  // would. false: it finished before.
  bool Kill(const Call& call, int nth);

 private:
  std::pair<int, int> CountCalls(const Call& call, int least_add, int least_del);
};

}  // namespace railhead::testing
