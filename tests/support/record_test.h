// Properties of every record (netns/json/record.h): a test instantiates RecordTest for its records.
//
//   using Records = ::testing::Types<Tenant, OwnNames>;
//   INSTANTIATE_TYPED_TEST_SUITE_P(State, RecordTest, Records);
//
// A record that is wrong across fields (Shape<T>::Check) is not written. Any other record is read back as it
// was written. A value of a wrong type and a cut text are refused. A field that a newer version has added is
// passed over, or refused by its name where people write the record.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "netns/json/record_io.h"
#include "tests/support/seed.h"

namespace railhead::testing {

// Random values that a record may have. The ends of a range come more often than other values.
class AnyRecord {
 public:
  explicit AnyRecord(std::uint64_t seed) : random_(seed) {}

  template <typename T>
  T Of() {
    T object{};
    Filler<T> filler{*this, object};
    Shape<T>::List(filler);
    return object;
  }

  std::uint64_t Below(std::uint64_t end) {
    return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random_);
  }

 private:
  template <typename T>
  struct Filler {
    AnyRecord& any;
    T& object;

    template <typename C, typename M>
    void operator()(const char* /*key*/, M C::*member, const FieldRules& rules = {}) {
      if constexpr (record::kIsOptional<M>) {
        if (record::IsNeeded(rules) || any.Below(2) == 0)
          object.*member = any.Value<typename M::value_type>(rules);
      } else {
        object.*member = any.Value<M>(rules);
      }
    }
    void Version(std::int64_t /*version*/, const char* /*hint*/ = "") {}
    template <typename C, typename M>
    void Implied(const char* key, M C::*member, M C::* /*otherwise*/, const FieldRules& rules = {}) {
      (*this)(key, member, rules);
    }
    template <typename C, typename M>
    void Part(M C::*member) {
      Part(member, [](auto& part) { Shape<record::TypeIn<M>>::List(part); });
    }
    // Does not change values that the record only points to.
    template <typename C, typename M, typename List>
    void Part(M C::*member, List list) {
      if constexpr (record::kIsOptional<M>) {
        if (!(object.*member) && any.Below(2) == 0) (object.*member).emplace();
        if (!(object.*member)) return;
        Filler<record::TypeIn<M>> part{any, *(object.*member)};
        list(part);
      } else if constexpr (std::same_as<M, record::TypeIn<M>>) {
        Filler<M> part{any, object.*member};
        list(part);
      }
    }
    template <typename List>
    void Group(const char* /*key*/, List list) {
      list(*this);
    }
    template <typename Function>
    void Output(const char* /*key*/, Function /*function*/, const FieldRules& /*rules*/ = {}) {}
    template <typename Function>
    void Column(const char* /*heading*/, Function /*function*/, bool /*wide*/ = false) {}
  };

  std::int64_t Int(std::int64_t min, std::int64_t max) {
    switch (Below(4)) {
      case 0:
        return min;
      case 1:
        return max;
      case 2:
        return std::clamp<std::int64_t>(0, min, max);
      default:
        return std::uniform_int_distribution<std::int64_t>(min, max)(random_);
    }
  }

  std::string Text(bool may_be_empty) {
    const std::vector<std::string> texts = {"a",         " ",     "\"\\\n\t\x01", "\xc3\xa4",
                                            "two words", "~/x~1", "null"};
    const std::uint64_t which = Below(texts.size() + (may_be_empty ? 1 : 0));
    return which == texts.size() ? "" : texts[which] + (Below(2) == 0 ? std::to_string(Below(1000)) : "");
  }

  template <typename T>
  T Form() {
    if constexpr (std::same_as<T, MacAddress>) {
      MacAddress mac;
      for (auto& byte : mac.bytes) byte = static_cast<std::uint8_t>(Below(256));
      return mac;
    } else if constexpr (std::same_as<T, IpAddress>) {
      return *IpAddress::Parse(Below(2) == 0 ? "10.1.2." + std::to_string(Below(256))
                                             : "fd00::" + std::to_string(Below(9999)));
    } else if constexpr (std::same_as<T, IpPrefix>) {
      return *IpPrefix::Parse(Form<IpAddress>().ToString() + "/" + std::to_string(Below(33)));
    } else {
      return T{};
    }
  }

  template <typename T>
  T List(const FieldRules& rules) {
    T list{};
    for (std::uint64_t left = Below(4); left > 0; --left) {
      if constexpr (record::kIsDictionary<T>) {
        record::AddTo(list, {Text(true), Value<typename T::value_type::second_type>(rules)});
      } else {
        record::AddTo(list, Value<typename T::value_type>(rules));
      }
    }
    // A dictionary is read in the order of its keys.
    if constexpr (record::kIsDictionary<T> && requires { std::ranges::sort(list); }) std::ranges::sort(list);
    return list;
  }

 public:
  template <typename T>
  T Value(const FieldRules& rules) {
    if constexpr (std::same_as<T, bool>) {
      return Below(2) == 0;
    } else if constexpr (std::integral<T>) {
      return static_cast<T>(Int(record::SmallestOf<T>(rules), record::LargestOf<T>(rules)));
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(rules.min) +
             (static_cast<T>(rules.max) - static_cast<T>(rules.min)) * static_cast<T>(Below(9)) / 8;
    } else if constexpr (std::same_as<T, std::string>) {
      return Text(rules.need != Need::kRequired);
    } else if constexpr (record::kIsDuration<T>) {
      return T(static_cast<typename T::rep>(Int(rules.min, rules.max)));
    } else if constexpr (std::same_as<T, record::WallTime>) {
      // Within the clock's range, with years of four digits.
      return record::WallTime(std::chrono::seconds(Below(9'000'000'000)));
    } else if constexpr (HasNames<T>) {
      return Names<T>::kAll[Below(Names<T>::kAll.size())].second;
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<T>(Int(rules.min, rules.max));
    } else if constexpr (record::HasTextForm<T>) {
      return Form<T>();
    } else if constexpr (record::kIsDictionary<T> || record::kIsList<T>) {
      return List<T>(rules);
    } else {
      return Of<T>();
    }
  }

 private:
  std::mt19937_64 random_;
};

// Calls `visit` with each value of `json` and where it is.
inline void VisitValues(nlohmann::ordered_json& json, const std::string& at,
                        const std::function<void(const std::string&, nlohmann::ordered_json&)>& visit) {
  if (!at.empty()) visit(at, json);
  if (json.is_object()) {
    for (auto& [key, value] : json.items()) {
      VisitValues(value, at + "/" + EscapePointer(key), visit);
    }
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) VisitValues(json[i], at + "/" + std::to_string(i), visit);
  }
}

template <typename T>
class RecordTest : public ::testing::Test {
 protected:
  // One that can be written.
  T Good() {
    for (int tries = 0; tries < 1000; ++tries) {
      T value = any_.Of<T>();
      if (FormatRecord(value, "record")) return value;
    }
    ADD_FAILURE() << "no record is a good one";
    return {};
  }

  AnyRecord any_{Seed()};
};
TYPED_TEST_SUITE_P(RecordTest);

TYPED_TEST_P(RecordTest, WhateverIsWrittenIsReadAgain) {
  for (int tries = 0; tries < 200; ++tries) {
    const TypeParam value = this->Good();
    const std::string text = FormatRecord(value, "record", tries % 2).value();
    const auto again = ParseRecord<TypeParam>(text, "text");
    ASSERT_TRUE(again) << Describe(again.error()) << "\n" << text;
    ASSERT_EQ(*again, value) << text;
    ASSERT_EQ(FormatRecord(*again, "record", tries % 2).value(), text);
  }
}

TYPED_TEST_P(RecordTest, NoValueOfAWrongTypeIsAccepted) {
  int refused = 0;
  for (int tries = 0; tries < 10; ++tries) {
    const TypeParam value = this->Good();
    nlohmann::ordered_json json = ToJson(value);
    VisitValues(json, "", [&](const std::string& at, nlohmann::ordered_json& place) {
      const nlohmann::ordered_json good = place;
      place = good.is_structured() ? nlohmann::ordered_json(7) : nlohmann::ordered_json::object();
      const auto read = ParseRecord<TypeParam>(record::Dump(json), "text");
      if (read) {
        // The reader ignores fields that are only shown.
        EXPECT_EQ(*read, value) << at << " is taken for something else";
      } else {
        EXPECT_NE(read.error().message.find(at.substr(at.rfind('/'))), std::string::npos)
            << at << ": " << read.error().message;
        ++refused;
      }
      place = good;
    });
  }
  EXPECT_GT(refused, 0);
}

// The strict reader tells the objects with fields from those whose keys are data.
TYPED_TEST_P(RecordTest, AFieldOfANewerVersionIsPassedOverOrNamed) {
  const std::string field = "fieldOfANewerVersion";
  for (int tries = 0; tries < 4; ++tries) {
    const TypeParam value = this->Good();
    nlohmann::ordered_json whole = ToJson(value);
    const auto try_at = [&](const std::string& at, nlohmann::ordered_json& object) {
      if (!object.is_object()) return;
      for (const char* added : {"null", "7", R"("x")", R"([{}])", R"({"a": {"b": 1}})"}) {
        object[field] = nlohmann::ordered_json::parse(added);
        const std::string text = record::Dump(whole);
        object.erase(field);
        const auto strict = ParseRecord<TypeParam>(text, "text", UnknownFields::kRefuse);
        const bool is_named =
            !strict && strict.error().message.find(at + "/" + field + ": unknown field") != std::string::npos;
        if (at.empty()) EXPECT_TRUE(is_named) << text;
        if (!is_named) continue;
        const auto read = ParseRecord<TypeParam>(text, "text");
        ASSERT_TRUE(read) << Describe(read.error());
        EXPECT_EQ(*read, value) << at << ": " << added;
      }
    };
    try_at("", whole);
    VisitValues(whole, "", try_at);
  }
}

TYPED_TEST_P(RecordTest, NoPartOfTheTextIsAccepted) {
  const std::string text = FormatRecord(this->Good(), "record").value();
  for (std::size_t size = 0; size + 1 < text.size(); ++size)
    ASSERT_FALSE(ParseRecord<TypeParam>(text.substr(0, size), "text")) << text.substr(0, size);
}

REGISTER_TYPED_TEST_SUITE_P(RecordTest, WhateverIsWrittenIsReadAgain, NoValueOfAWrongTypeIsAccepted,
                            AFieldOfANewerVersionIsPassedOverOrNamed, NoPartOfTheTextIsAccepted);

}  // namespace railhead::testing
