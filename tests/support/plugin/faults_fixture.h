// Calls of the plugin that fail or are killed at every call of the kernel.
#pragma once

#include <string>
#include <utility>

#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {

class FaultsFixture : public PluginFixture {
 protected:
  // The number of kernel calls of one successful ADD, or of the DEL after it. Afterwards the node is as
  // before. The test fails when there are fewer than `least`, since a sweep would then cover less than it
  // claims.
  int CountAdd(const Call& call, int least) { return CountCalls(call, least, 0).first; }
  int CountDel(const Call& call, int least) { return CountCalls(call, 0, least).second; }

  // Fails ADD at every kernel call (at least `least`). ADD must report the error, and nothing may remain.
  void FailAddEverywhere(const Call& call, FakeKernel::Fault fault, int least);
  // Fails DEL at every kernel call (at least `least`). A second DEL must complete.
  void FailDelEverywhere(const Call& call, FakeKernel::Fault fault, int least);

  // Runs `call` until the nth call of the kernel and stops it there, like SIGKILL. false: it finished before.
  bool Kill(const Call& call, int nth);

 private:
  std::pair<int, int> CountCalls(const Call& call, int least_add, int least_del);
};

}  // namespace railhead::testing
