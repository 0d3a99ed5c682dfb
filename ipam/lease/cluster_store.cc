#include "ipam/lease/cluster_store.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "netns/json/json_reader.h"

namespace railhead::ipam {
namespace {

constexpr const char* kProbation = "probation";
constexpr const char* kLeased = "leased";
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();

// All that is wrong with it is that it is no record of ours.
template <typename T>
Result<T> Malformed(const LeaseEntry& entry, const Error& why) {
  return Fail(ErrorCode::kMalformed, "cluster store: " + why.message,
              "something else writes " + Describe(entry.key) +
                  ", or a newer version: remove it when no node uses it");
}

Result<JsonDocument> Parse(const LeaseEntry& entry) {
  auto document = JsonDocument::Parse(entry.value, Describe(entry.key));
  if (!document) return Malformed<JsonDocument>(entry, document.error());
  return document;
}

std::vector<std::uint64_t> ReadIndexes(JsonReader& reader, const std::string& pool) {
  std::vector<std::uint64_t> indexes;
  const nlohmann::json* list = reader.Raw(pool);
  if (list == nullptr || !list->is_array()) {
    reader.Fail(pool, "is no list of block numbers");
    return indexes;
  }
  for (const nlohmann::json& item : *list) {
    if (item.is_number_unsigned()) {
      indexes.push_back(item.get<std::uint64_t>());
    } else {
      reader.Fail(pool, "is no list of block numbers");
    }
  }
  return indexes;
}

}  // namespace

std::string Describe(const LeaseKey& key) {
  if (key.kind == LeaseKey::Kind::kNode) return "the record of node " + key.node;
  if (key.index == kLayoutIndex) return "the layout of " + key.pool;
  return "block " + std::to_string(key.index) + " of " + key.pool;
}

std::string Encode(const BlockRecord& record) {
  nlohmann::ordered_json json;
  json["node"] = record.node;
  json["instance"] = record.instance;
  json["nonce"] = record.nonce;
  json["state"] = record.leased ? kLeased : kProbation;
  return json.dump();
}

std::string Encode(const NodeRecord& record) {
  nlohmann::ordered_json json;
  json["instance"] = record.instance;
  if (!record.previous.empty()) json["previous"] = record.previous;
  json["session"] = record.session;
  json["machine"] = record.machine;
  json["boot"] = record.boot;
  json["counter"] = record.counter;
  json["blocks"] = record.blocks;
  if (!record.taken_by.empty()) json["takenBy"] = record.taken_by;
  return json.dump();
}

std::string EncodeLayout(std::uint64_t block_size) {
  return nlohmann::ordered_json({{"blockSize", block_size}}).dump();
}

Result<BlockRecord> ParseBlockRecord(const LeaseEntry& entry) {
  const auto document = RH_TRY(Parse(entry));
  JsonReader reader = document.Root();
  BlockRecord record;
  record.node = reader.RequiredString("node");
  record.instance = reader.RequiredString("instance");
  record.nonce = reader.RequiredString("nonce");
  const std::string state = reader.RequiredString("state");
  if (state != kProbation && state != kLeased) reader.Fail("state", "'" + state + "' is not known");
  record.leased = state == kLeased;
  if (const auto good = reader.status(); !good) return Malformed<BlockRecord>(entry, good.error());
  return record;
}

Result<NodeRecord> ParseNodeRecord(const LeaseEntry& entry) {
  const auto document = RH_TRY(Parse(entry));
  JsonReader reader = document.Root();
  NodeRecord record;
  record.instance = reader.RequiredString("instance");
  record.previous = reader.String("previous").value_or("");
  record.session = reader.RequiredString("session");
  record.machine = reader.String("machine").value_or("");
  record.boot = reader.String("boot").value_or("");
  record.counter = static_cast<std::uint64_t>(reader.Int("counter", 0, kMaxInt).value_or(0));
  if (auto blocks = reader.Object("blocks"); blocks) {
    for (const std::string& pool : blocks->Keys()) record.blocks[pool] = ReadIndexes(*blocks, pool);
  }
  record.taken_by = reader.String("takenBy").value_or("");
  if (const auto good = reader.status(); !good) return Malformed<NodeRecord>(entry, good.error());
  return record;
}

Result<std::uint64_t> ParseLayout(const LeaseEntry& entry) {
  const auto document = RH_TRY(Parse(entry));
  JsonReader reader = document.Root();
  const auto size = reader.Int("blockSize", 1, kMaxInt);
  if (!size && !reader.Has("blockSize")) reader.Fail("blockSize", "is missing");
  if (const auto good = reader.status(); !good) return Malformed<std::uint64_t>(entry, good.error());
  return static_cast<std::uint64_t>(*size);
}

}  // namespace railhead::ipam
