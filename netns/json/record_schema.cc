#include "netns/json/record_schema.h"

namespace railhead::record {

Json OrNull(Json schema) {
  if (!schema.is_object() || schema.empty()) return schema;
  if (schema.contains("enum")) {
    schema["enum"].push_back(nullptr);
  } else if (schema.contains("anyOf")) {
    schema["anyOf"].push_back({{"type", "null"}});
  } else if (schema.contains("type")) {
    if (!schema["type"].is_array()) schema["type"] = Json::array({schema["type"]});
    schema["type"].push_back("null");
  }
  return schema;
}

Json WordsSchema(const std::vector<std::string>& words) {
  return {{"enum", words}};
}

Json IntSchema(std::int64_t min, std::int64_t max) {
  Json schema{{"type", "integer"}};
  if (min > std::numeric_limits<std::int64_t>::min()) schema["minimum"] = min;
  if (max < std::numeric_limits<std::int64_t>::max()) schema["maximum"] = max;
  return schema;
}

}  // namespace railhead::record
