// Records of a cluster store, which other nodes and people write. The first byte selects the kind of record.
#include "deviceplugin/services/address_leasing/kube_store.h"
#include "ipam/lease/cluster_store.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

void ReadBlock(const std::string& text) {
  const ipam::LeaseKey key = ipam::LeaseKey::Block("10.7.0.0/16", 3);
  const auto record = ipam::ParseBlockRecord({key, text, "1"});
  if (!record) return;
  const auto again = ipam::ParseBlockRecord({key, Encode(*record), "1"});
  Require(again && *again == *record, "a block's record is read as it was written");
}

void ReadNode(const std::string& text) {
  const ipam::LeaseKey key = ipam::LeaseKey::Node("n1");
  const auto record = ipam::ParseNodeRecord({key, text, "1"});
  if (!record) return;
  const auto again = ipam::ParseNodeRecord({key, Encode(*record), "1"});
  Require(again && *again == *record, "a node's record is read as it was written");
}

void ReadLayout(const std::string& text) {
  const ipam::LeaseKey key = ipam::LeaseKey::Block("10.7.0.0/16", ipam::kLayoutIndex);
  const auto size = ipam::ParseLayout({key, text, "1"});
  if (!size) return;
  const auto again = ipam::ParseLayout({key, Encode(*size), "1"});
  Require(again && *again == *size, "a layout is read as it was written");
}

void ReadName(const std::string& text) {
  using enum ipam::LeaseKey::Kind;
  for (const auto kind : {kBlock, kNode, kIndex}) {
    const auto key = address_leasing::ParseKubeName(kind, text);
    if (!key) continue;
    const auto name = address_leasing::KubeNameOf(*key);
    Require(name && *name == text, "a name and its key stand for each other");
  }
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace railhead::fuzz;
  if (size == 0) return 0;
  const std::string text = TextOf(data + 1, size - 1);
  switch (data[0]) {
    case 'b':
      ReadBlock(text);
      break;
    case 'n':
      ReadNode(text);
      break;
    case 'l':
      ReadLayout(text);
      break;
    default:
      ReadName(text);
  }
  return 0;
}
