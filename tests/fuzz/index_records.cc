// Claims of indices, which other nodes and people write. The first byte selects a claim's value or its name.
#include "deviceplugin/services/node_index/index_store.h"
#include "deviceplugin/services/node_index/kube_index_store.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

void ReadRecord(const std::string& text) {
  const auto record = node_index::ParseIndexRecord({3, text, "1"});
  if (!record) return;
  const auto again = node_index::ParseIndexRecord({3, Encode(*record), "1"});
  Require(again && *again == *record, "a claim is read as it was written");
}

void ReadName(const std::string& text) {
  const auto index = node_index::ParseKubeName(text);
  if (!index) return;
  Require(*index <= node_index::kLastIndex, "an index is at most the last one");
  Require(node_index::KubeNameOf(*index) == text, "a name and its index stand for each other");
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace railhead::fuzz;
  if (size == 0) return 0;
  const std::string text = TextOf(data + 1, size - 1);
  if (data[0] == 'r') {
    ReadRecord(text);
  } else {
    ReadName(text);
  }
  return 0;
}
