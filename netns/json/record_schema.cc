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

Json ObjectSchemaWriter::EmptyObject() {
  return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
}

void ObjectSchemaWriter::Version(std::int64_t version, const char* /*hint*/) {
  Add("version", {{"const", version}}, kRequiredField);
}

void ObjectSchemaWriter::Foreign(const char* key) {
  std::string_view name = key;
  if (name == "*") {
    object_.erase("additionalProperties");
  } else if (name.ends_with('*')) {
    name.remove_suffix(1);
    object_["patternProperties"]["^" + std::string(name)] = true;
  } else {
    object_["properties"][key] = true;
  }
}

void ObjectSchemaWriter::AddObject(const char* key, Json schema, const FieldRules& rules) {
  if (!IsNeeded(rules) && !schema.contains("required")) schema["default"] = Json::object();
  Add(key, std::move(schema), rules);
}

void ObjectSchemaWriter::Add(const char* key, Json schema, const FieldRules& rules) {
  if (IsNeeded(rules)) {
    object_["required"].push_back(key);
  } else {
    schema = OrNull(std::move(schema));
  }
  if (rules.blank) schema = {{"anyOf", {{{"const", ""}}, std::move(schema)}}};
  object_["properties"][key] = std::move(schema);
}

void AddDefault(Json written, const Refusal& refusal, const FieldRules& rules, Json& schema) {
  const bool blank = written.is_string() && written.get_ref<const std::string&>().empty();
  const bool none = blank || written.is_null() || (written.empty() && rules.filled);
  if (refusal.why.empty() && !none) schema["default"] = std::move(written);
}

}  // namespace railhead::record
