// The JSON schema (draft 7) of a record, from its list of fields (record.h).
//
//   SchemaOf<Fabric>("fabric.json")
//
// Everything that the schema refuses, the strict reader refuses: types, ranges, words, unknown keys. Only the
// reader refuses these: the Shapes' Check(), the forms of texts (addresses, prefixes), and a number with a
// fraction of zero (1.0). A null counts as absent, where a field may be absent.
//
// Included where a schema is made, and nowhere else. Threads: pure functions.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "netns/json/record_forms.h"
#include "netns/json/record_read.h"
#include "netns/json/record_write.h"

namespace railhead {
namespace record {

// The schema, or null.
Json OrNull(Json schema);
Json WordsSchema(const std::vector<std::string>& words);
Json IntSchema(std::int64_t min, std::int64_t max);

template <typename T>
Json ValueSchema(const FieldRules& rules) {
  if constexpr (std::same_as<T, bool>) {
    return rules.no != nullptr ? WordsSchema({rules.no, rules.yes}) : Json{{"type", "boolean"}};
  } else if constexpr (std::integral<T>) {
    return IntSchema(SmallestOf<T>(rules), LargestOf<T>(rules));
  } else if constexpr (std::floating_point<T>) {
    return {{"type", "number"}, {"minimum", rules.min}, {"maximum", rules.max}};
  } else if constexpr (std::same_as<T, WallTime>) {
    return rules.time == TimeForm::kText ? Json{{"type", "string"}, {"format", "date-time"}}
                                         : IntSchema(0, kLastSecond);
  } else if constexpr (HasNames<T>) {
    std::vector<std::string> words;
    words.reserve(Names<T>::kAll.size());
    for (const auto& [word, value] : Names<T>::kAll) words.emplace_back(word);
    return WordsSchema(words);
  } else if constexpr (kIsDuration<T> || std::is_enum_v<T>) {
    return IntSchema(rules.min, rules.max);
  } else if constexpr (std::convertible_to<T, std::string_view>) {
    Json schema{{"type", "string"}};
    if (IsFilled(rules)) schema["minLength"] = 1;
    return schema;
  } else if constexpr (HasTextForm<T>) {
    return {{"type", "string"}};
  } else if constexpr (kIsDictionary<T>) {
    return {{"type", "object"},
            {"additionalProperties", OrNull(ValueSchema<typename T::value_type::second_type>(rules))}};
  } else if constexpr (kIsList<T>) {
    FieldRules of_one = rules;
    of_one.need = Need::kOptional;
    of_one.filled = false;
    const Json one = ValueSchema<typename T::value_type>(of_one);
    Json list{{"type", "array"}, {"items", one}};
    if (rules.filled) list["minItems"] = 1;
    return rules.or_one ? Json{{"anyOf", {one, list}}} : list;
  } else {
    return ObjectSchema(T{});
  }
}

template <typename T>
inline constexpr bool kIsRecords = false;
template <IsRecord T>
inline constexpr bool kIsRecords<std::vector<T>> = true;

// The schema of an object, field by field: what does not depend on the record's type, so that one copy of the
// code serves all.
class ObjectSchemaWriter {
 public:
  explicit ObjectSchemaWriter(Json& object) : object_(object) {}

  static Json EmptyObject();

  void Version(std::int64_t version, const char* hint = "");
  void Foreign(const char* key);
  void Gone(const char* /*key*/, const char* /*hint*/) {}
  template <typename F>
  void Form(const char* key, F /*form*/, const FieldRules& rules = {}) {
    Add(key, F::Schema(), rules);
  }
  template <typename Function>
  void Output(const char* key, Function /*function*/, const FieldRules& /*rules*/ = {}) {
    Foreign(key);
  }
  template <typename Function>
  void Column(const char* /*heading*/, Function /*function*/, bool /*wide*/ = false) {}

 protected:
  // Absent, each of its fields is as by default.
  void AddObject(const char* key, Json schema, const FieldRules& rules);
  void Add(const char* key, Json schema, const FieldRules& rules);
  [[nodiscard]] Json& object() const { return object_; }

 private:
  Json& object_;
};

// `written`: the default as JSON. An empty value, or one that the rules refuse (`refusal`), is none.
void AddDefault(Json written, const Refusal& refusal, const FieldRules& rules, Json& schema);

// The schema of a member that is no record itself. A member that Complete() sets has no default in the
// schema.
template <typename M>
Json MemberSchema(const M& usual, const FieldRules& rules) {
  Json schema = ValueSchema<typename OptionalOf<M>::Value>(rules);
  if constexpr (!kIsOptional<M>) {
    if (IsNeeded(rules)) return schema;
    Refusal refusal;
    Json written = Json::array();
    // A list of records is empty by default, and its records may be of a type that is only read.
    if constexpr (!kIsRecords<M>) written = WriteValue(usual, rules, {}, refusal);
    AddDefault(std::move(written), refusal, rules, schema);
  }
  return schema;
}

template <typename T>
class SchemaWriter : public ObjectSchemaWriter {
 public:
  SchemaWriter(const T& defaults, Json& object) : ObjectSchemaWriter(object), defaults_(defaults) {}

  template <typename C, typename M>
  void operator()(const char* key, M C::*member, const FieldRules& rules = {}) {
    if constexpr (IsRecord<M>) {
      AddObject(key, ObjectSchema(defaults_.*member), rules);
    } else {
      Add(key, MemberSchema(defaults_.*member, rules), rules);
    }
  }
  template <typename C, typename M>
  void Implied(const char* key, M C::*member, M C::* /*otherwise*/, const FieldRules& rules = {}) {
    (*this)(key, member, rules);
  }
  template <typename C, typename M>
  void Part(M C::*member) {
    Part(member, [](auto& part) { Shape<TypeIn<M>>::List(part); });
  }
  template <typename C, typename M, typename List>
  void Part(M C::*member, List list) {
    // An optional part may have no value by default.
    const TypeIn<M>* const value = ValueIn(defaults_.*member);
    const TypeIn<M> otherwise{};
    SchemaWriter<TypeIn<M>> part(value == nullptr ? otherwise : *value, object());
    list(part);
  }
  template <typename List>
  void Group(const char* key, List list) {
    Json schema = EmptyObject();
    SchemaWriter<T> group(defaults_, schema);
    list(group);
    AddObject(key, std::move(schema), {});
  }

 private:
  const T& defaults_;
};

template <typename T>
Json ObjectSchema(const T& defaults) {
  Json object = ObjectSchemaWriter::EmptyObject();
  SchemaWriter<T> writer(defaults, object);
  Shape<T>::List(writer);
  if constexpr (HasSwitch<T>) object["type"] = Json::array({"object", "boolean"});
  return object;
}

}  // namespace record

// `title` names what is described.
template <typename T>
nlohmann::ordered_json SchemaOf(const std::string& title) {
  nlohmann::ordered_json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  schema.update(record::ObjectSchema(T{}));
  return schema;
}

// Of a part that another record keeps as text (ParseSection).
template <typename T>
nlohmann::ordered_json SectionSchemaOf() {
  return record::OrNull(record::ObjectSchema(T{}));
}

}  // namespace railhead
