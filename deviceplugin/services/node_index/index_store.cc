#include "deviceplugin/services/node_index/index_store.h"

#include "deviceplugin/services/node_index/kube_index_store.h"
#include "netns/json/record_io.h"

namespace railhead::node_index {

std::string Encode(const IndexRecord& record) {
  return ToJson(record).dump();
}

Result<IndexRecord> ParseIndexRecord(const ClaimEntry& entry) {
  const std::string name = KubeNameOf(entry.index);
  auto record = ParseRecord<IndexRecord>(entry.value, "NodeIndex " + name);
  if (record) return record;
  return Fail(ErrorCode::kMalformed, record.error().message,
              "kubectl get nodeindex " + name + " -o yaml; remove it when no node uses the index");
}

std::string_view NameOf(IndexEvent::Kind kind) {
  switch (kind) {
    case IndexEvent::Kind::kClaimed:
      return "index claimed";
    case IndexEvent::Kind::kTakenOver:
      return "index taken over from an earlier node of this name";
    case IndexEvent::Kind::kConflict:
      return "index not claimed";
    case IndexEvent::Kind::kLost:
      return "index lost";
    case IndexEvent::Kind::kUnfit:
      return "index given up";
    case IndexEvent::Kind::kReleased:
      return "former index of this node freed";
    case IndexEvent::Kind::kFreed:
      return "index of a removed node freed";
    case IndexEvent::Kind::kUnreadable:
      return "claim of an index cannot be read, its index stays taken";
    case IndexEvent::Kind::kCrowded:
      return "a node has claimed many indices";
  }
  return "";
}

bool IsProblem(IndexEvent::Kind kind) {
  using Kind = IndexEvent::Kind;
  return kind == Kind::kLost || kind == Kind::kUnfit || kind == Kind::kUnreadable || kind == Kind::kCrowded;
}

}  // namespace railhead::node_index
