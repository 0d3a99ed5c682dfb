// Whatever nodes show, the fabric is valid.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "deviceplugin/tools/fabric_suggest/suggest.h"
#include "tests/support/rapidcheck.h"
#include "tests/support/record_test.h"
#include "tests/unit/deviceplugin/tools/fabric_suggest/nodes.h"

namespace railhead::testing {
// Only its random values are used here.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordTest);
namespace {

using fabric_suggest::NodeObservation;
using fabric_suggest::Suggest;
using fabric_suggest::Suggestion;
using fabric_suggest::SuggestOptions;

// What a node may show: mostly as others, in places anything.
NodeObservation AnyNode(AnyRecord& any, int number) {
  if (any.Below(12) == 0) return any.Of<NodeObservation>();
  NodeObservation node = GpuNode(number);
  node.pfs.resize(1 + any.Below(kPfs));
  for (std::uint64_t changes = any.Below(6); changes > 0; --changes) {
    auto& pf = node.pfs[any.Below(node.pfs.size())];
    const auto other = any.Of<fabric_suggest::ObservedPf>();
    switch (any.Below(10)) {
      case 0:
        pf = other;
        break;
      case 1:
        pf.netdev = other.netdev;
        break;
      case 2:
        pf.device = other.device;
        break;
      case 3:
        pf.networks = other.networks;
        break;
      case 4:
        pf.neighbor = other.neighbor;
        break;
      case 5:
        pf.mtu = other.mtu;
        break;
      case 6:
        pf.vfs = other.vfs;
        pf.most_vfs = other.most_vfs;
        break;
      case 7:
        pf.vf_vlan = other.vf_vlan;
        break;
      case 8:
        pf.path = any.Below(2) == 0 ? "SYS" : "";
        break;
      default:
        std::swap(pf.neighbor, node.pfs[any.Below(node.pfs.size())].neighbor);
    }
  }
  return node;
}

SuggestOptions AnyOptions(AnyRecord& any) {
  SuggestOptions options;
  if (any.Below(2) == 0) {
    const bool v6 = any.Below(3) == 0;
    const int bits = v6 ? 128 : 32;
    const int length = 8 + static_cast<int>(any.Below(static_cast<std::uint64_t>(bits) - 9));
    options.supernet = IpPrefix{*IpAddress::Parse(v6 ? "fd00::7" : "10.100.3.1"), length}.Network();
    if (any.Below(2) == 0) options.rail_prefix = length + static_cast<int>(any.Below(8));
  }
  const int place = any.Below(3);
  if (place > 0) options.gateway = Gateway::Parse(place == 1 ? "first" : "last");
  options.all_pfs = any.Below(2) == 0;
  return options;
}

TEST(SuggestPropertyTest, TheFabricIsValidAndTheOrderOfNodesMakesNoDifference) {
  ExpectProperty([] {
    AnyRecord any(*rc::gen::arbitrary<std::uint64_t>());
    std::vector<NodeObservation> nodes;
    for (auto count = static_cast<int>(any.Below(7)); count > 0; --count)
      nodes.push_back(AnyNode(any, count));
    SuggestOptions options = AnyOptions(any);
    if (!CheckOptions(options)) options = {};
    const Suggestion suggestion = Suggest(nodes, options);
    if (!suggestion.fabric.empty()) {
      std::vector<Error> errors;
      const auto fabric = ParseFabric(suggestion.fabric, "suggested", &errors);
      if (!fabric) RC_FAIL(Describe(fabric.error()) + "\n" + suggestion.fabric);
      const auto provision = provision::ReadProvisionSettings(*fabric, "suggested");
      if (!provision) RC_FAIL(Describe(provision.error()) + "\n" + suggestion.fabric);
    }
    if (!suggestion.fabric.empty()) {
      // A rerun keeps it, and has nothing to add.
      SuggestOptions again = options;
      again.present = suggestion.fabric;
      const Suggestion same = Suggest(nodes, again);
      const auto before = ParseFabric(suggestion.fabric, "suggested");
      const auto after = ParseFabric(same.fabric, "suggested again");
      if (!after) RC_FAIL(Describe(after.error()) + "\n" + same.fabric);
      for (std::size_t i = 0; i < before->rails.size(); ++i)
        RC_ASSERT(after->rails.at(i) == before->rails[i]);
      if (suggestion.contradictions.empty()) RC_ASSERT(same.fabric == suggestion.fabric);
    }
    std::mt19937_64 random(any.Below(1'000'000));
    std::ranges::shuffle(nodes, random);
    const Suggestion other = Suggest(nodes, options);
    RC_ASSERT(other.fabric == suggestion.fabric);
    RC_ASSERT(other.guesses == suggestion.guesses);
    RC_ASSERT(other.contradictions == suggestion.contradictions);
  });
}

}  // namespace
}  // namespace railhead::testing
