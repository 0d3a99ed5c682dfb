#include "ipam/lease/cluster_store.h"

#include "netns/json/record_io.h"

namespace railhead::ipam {
namespace {

// Any error means: this is not a record of Railhead.
template <typename T>
Result<T> Parse(const LeaseEntry& entry) {
  auto record = ParseRecord<T>(entry.value, Describe(entry.key));
  if (record) return record;
  return Fail(ErrorCode::kMalformed, "cluster store: " + record.error().message,
              "another program or a newer version writes " + Describe(entry.key) +
                  ": remove it when no node uses it");
}

}  // namespace

std::string Describe(const LeaseKey& key) {
  if (key.kind == LeaseKey::Kind::kNode) return "the record of node " + key.node;
  if (key.kind == LeaseKey::Kind::kIndex) return "the claim of index " + std::to_string(key.index);
  if (key.index == kLayoutIndex) return "the layout of " + key.pool;
  return "block " + std::to_string(key.index) + " of " + key.pool;
}

std::string Encode(const BlockRecord& record) {
  return ToJson(record).dump();
}

std::string Encode(const NodeRecord& record) {
  return ToJson(record).dump();
}

std::string Encode(const LayoutRecord& record) {
  return ToJson(record).dump();
}

Result<BlockRecord> ParseBlockRecord(const LeaseEntry& entry) {
  return Parse<BlockRecord>(entry);
}

Result<NodeRecord> ParseNodeRecord(const LeaseEntry& entry) {
  return Parse<NodeRecord>(entry);
}

Result<LayoutRecord> ParseLayout(const LeaseEntry& entry) {
  return Parse<LayoutRecord>(entry);
}

}  // namespace railhead::ipam
