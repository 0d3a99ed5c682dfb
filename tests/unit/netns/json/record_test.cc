// What the list of fields of a record decides; that writer and reader agree: tests/support/record_test.h.
#include <gtest/gtest.h>

#include "netns/json/record_io.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {

enum class Colour : std::uint8_t { kRed, kBlue };

struct Inner {
  std::string name;
  int share = 0;
  bool operator==(const Inner&) const = default;
};

struct Outer {
  std::string name;
  std::optional<int> count;
  Colour colour = Colour::kRed;
  bool leased = false;
  std::uint8_t small = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::vector<Inner> parts;
  std::map<std::string, std::string> labels;
  bool operator==(const Outer&) const = default;
};

}  // namespace railhead::testing

namespace railhead {

template <>
struct Names<testing::Colour> {
  static constexpr std::array kAll = {std::pair{"red", testing::Colour::kRed},
                                      std::pair{"blue", testing::Colour::kBlue}};
};

template <>
struct Shape<testing::Inner> {
  static void List(auto& f) {
    f("name", &testing::Inner::name, kRequiredField);
    f("share", &testing::Inner::share, {.need = Need::kSparse, .min = 0, .max = 100});
  }
  static std::string Key(const testing::Inner& part) { return part.name; }
  static bool IsKnown(auto& reader) { return reader.String("name") != "newer"; }
};

template <>
struct Shape<testing::Outer> {
  using Outer = testing::Outer;
  static void List(auto& f) {
    f.Version(1, "made by hand?");
    f("name", &Outer::name, kRequiredField);
    f("count", &Outer::count);
    f("colour", &Outer::colour);
    f("state", &Outer::leased, {.no = "free", .yes = "leased"});
    f("small", &Outer::small, kSparseField);
    f("low", &Outer::low, kSparseField);
    f.Implied("high", &Outer::high, &Outer::low);
    f("parts", &Outer::parts);
    f("labels", &Outer::labels, kSparseField);
    f.Shown("parts#", [](const Outer& outer) { return outer.parts.size(); });
  }
  static void Check(const Outer& outer, const auto& complain) {
    if (outer.high < outer.low) complain("high", "is below low");
  }
};

}  // namespace railhead

namespace railhead::testing {
namespace {

Outer Small() {
  Outer outer;
  outer.name = "a";
  return outer;
}

std::string RefusalOf(const Outer& outer) {
  const auto text = FormatRecord(outer, "it");
  return text ? "written" : text.error().message;
}

std::string ErrorOf(const std::string& text, UnknownFields unknown = UnknownFields::kPassOver) {
  const auto outer = ParseRecord<Outer>(text, "it", unknown);
  return outer ? "read" : Describe(outer.error());
}

TEST(RecordTest, WhatIsSparseIsNotWritten) {
  EXPECT_EQ(FormatRecord(Small(), "it").value(),
            R"({"version":1,"name":"a","colour":"red","state":"free","parts":[],"parts#":0})"
            "\n");
  Outer outer = Small();
  outer.count = 0;
  outer.colour = Colour::kBlue;
  outer.leased = true;
  outer.low = 2;
  outer.high = 3;
  outer.small = 1;
  outer.parts = {{"p", 7}, {"q", 0}};
  outer.labels = {{"b", ""}};
  EXPECT_EQ(
      FormatRecord(outer, "it").value(),
      R"({"version":1,"name":"a","count":0,"colour":"blue","state":"leased","small":1,"low":2,"high":3,)"
      R"("parts":[{"name":"p","share":7},{"name":"q"}],"labels":{"b":""},"parts#":2})"
      "\n");
}

TEST(RecordTest, WhatTheReaderWouldRefuseIsNotWritten) {
  Outer outer;
  EXPECT_EQ(RefusalOf(outer), "it: /name: must not be empty");
  outer.name = std::string("a\0b", 3);
  EXPECT_EQ(RefusalOf(outer), "it: /name: holds a NUL character");
  outer = Small();
  outer.parts = {{"p", 0}, {"q", 101}};
  EXPECT_EQ(RefusalOf(outer), "it: /parts/1/share: 101 is out of range 0..100");
  outer.parts = {{"p", 0}, {"p", 1}};
  EXPECT_EQ(RefusalOf(outer), "it: /parts/1: 'p' is there twice");
  outer.parts.clear();
  outer.labels = {{"\xff", "1"}, {"\xfe", "2"}};
  EXPECT_NE(RefusalOf(outer).find("is there twice"), std::string::npos) << "neither is UTF-8";
  outer.labels.clear();
  outer.low = 4;
  outer.high = 3;
  EXPECT_EQ(RefusalOf(outer), "it: /high: is below low");
  outer.low = outer.high;
  outer.colour = static_cast<Colour>(7);
  EXPECT_EQ(RefusalOf(outer), "it: /colour: has no name");
}

TEST(RecordTest, RefusalsNameThePlaceAndWhatIsKnown) {
  const std::string good = R"({"version":1,"name":"a")";
  EXPECT_EQ(ErrorOf(good + "}"), "read");
  EXPECT_EQ(ErrorOf(R"({"name":"a"})"), "it: /version: is required; made by hand?");
  EXPECT_NE(ErrorOf(R"({"version":2,"name":"a"})").find("/version: 2 is out of range"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"version":1})").find("/name: is required"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"version":1,"name":""})").find("/name: must not be empty"), std::string::npos);
  EXPECT_EQ(ErrorOf(good + R"(,"colour":"green"})"),
            "it: /colour: 'green' is not known; known here: red, blue");
  EXPECT_EQ(ErrorOf(good + R"(,"state":"taken"})"),
            "it: /state: 'taken' is not known; known here: free, leased");
  EXPECT_NE(ErrorOf(good + R"(,"small":256})").find("/small: 256 is out of range 0..255"), std::string::npos);
  EXPECT_NE(ErrorOf(good + R"(,"parts":[{"name":"p"},{"name":"p"}]})").find("/parts/1: 'p' is there twice"),
            std::string::npos);
  EXPECT_NE(ErrorOf(good + R"(,"parts":[{}]})").find("/parts/0/name: is required"), std::string::npos);
  EXPECT_NE(ErrorOf(good + R"(,"low":4,"high":3})").find("/high: is below low"), std::string::npos);
}

TEST(RecordTest, WhatIsNotKnownIsPassedOverOrRefused) {
  const std::string text = R"({"version":1,"name":"a","newer":1,"parts":[{"name":"newer"},{"name":"p"}]})";
  const auto outer = ParseRecord<Outer>(text, "it");
  ASSERT_TRUE(outer) << Describe(outer.error());
  ASSERT_EQ(outer->parts.size(), 1U);
  EXPECT_NE(ErrorOf(text, UnknownFields::kRefuse).find("/newer: unknown field"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"version":1,"name":"a","colur":"red"})", UnknownFields::kRefuse)
                .find("did you mean 'colour'"),
            std::string::npos);
}

TEST(RecordTest, WhatIsAbsentIsTheDefaultOrImplied) {
  const Outer outer = ParseRecord<Outer>(R"({"version":1,"name":"a","low":5,"count":null})", "it").value();
  EXPECT_EQ(outer.high, 5);
  EXPECT_EQ(outer.count, std::nullopt);
  EXPECT_EQ(outer.colour, Colour::kRed);
}

TEST(RecordTest, AFileIsWrittenWholeAndNamedInErrors) {
  constexpr StateFile<Outer> kFile{"/run/railhead/outer.json", "keeping it"};
  const TempRoot temp;
  EXPECT_EQ(kFile.Read(temp.root()).value(), std::nullopt);
  ASSERT_TRUE(kFile.Write(temp.root(), Small()));
  EXPECT_EQ(kFile.Read(temp.root()).value(), Small());
  EXPECT_EQ(kFile.Write(temp.root(), Outer{}).error().message.find("keeping it: "), 0U);
  EXPECT_EQ(kFile.Read(temp.root()).value(), Small()) << "the file stays as it was";
  temp.Write("/run/railhead/outer.json", "{");
  EXPECT_NE(kFile.Read(temp.root()).error().message.find("/run/railhead/outer.json"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
