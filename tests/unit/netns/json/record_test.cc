// What a record's list of fields decides. (For writer and reader see tests/support/record_test.h.)
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

// As people write it.
struct Settings {
  std::string file;
  int rest = 0;
  int pause = -1;  // as long as the rest; never -1 once read
  std::optional<std::string> nick;
  std::vector<int> ports;
  std::optional<int> position;
  std::string word;
  Inner inner;
  bool operator==(const Settings&) const = default;
};

// May be false or true instead. What it has by default depends on the place.
struct Lamp {
  bool on = false;
  int watts = 5;
  std::string colour;
  bool operator==(const Lamp&) const = default;
};

struct House {
  Lamp hall = {true, 40, "white"};
  std::optional<Lamp> porch;
  std::string garden;  // JSON
  bool operator==(const House&) const = default;
};

// A number or a word.
struct PlaceForm {
  static void Read(const JsonValue& json, Settings& settings) {
    if (json.raw()->is_string()) {
      settings.word = json.String().value_or("");
    } else if (const auto position = json.Int(0, 9)) {
      settings.position = static_cast<int>(*position);
    }
  }
  static nlohmann::ordered_json Write(const Settings& settings) {
    if (settings.position) return *settings.position;
    return settings.word.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(settings.word);
  }
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
    f.Output("parts#", [](const Outer& outer) { return outer.parts.size(); });
  }
  static void Check(const Outer& outer, const auto& complain) {
    if (outer.high < outer.low) complain("high", "is below low");
  }
};

template <>
struct Shape<testing::Settings> {
  using Settings = testing::Settings;
  static void List(auto& f) {
    f("file", &Settings::file, {.need = Need::kRequired, .hint = "for example /x"});
    f.Group("times", [](auto& times) {
      times("rest", &Settings::rest, {.min = 0, .max = 60});
      times("pause", &Settings::pause, {.min = 0, .max = 60});
    });
    f("nick", &Settings::nick, {.blank = true});
    f("ports", &Settings::ports, {.min = 1, .filled = true, .or_one = true, .hint = "80 or [80, 81]"});
    f.Form("place", testing::PlaceForm{}, {.need = Need::kRequired, .hint = "a number or a word"});
    f.Part(&Settings::inner, [](auto& inner) { inner("share of it", &testing::Inner::share, {.min = 0}); });
    f.Foreign("dns");
    f.Foreign("cni.dev/*");
  }
  static void Complete(Settings& settings) {
    if (settings.pause < 0) settings.pause = settings.rest;
  }
  static void Check(const Settings& settings, const record::Complain& complain) {
    if (settings.pause < settings.rest) complain(PointerOf("times", "pause"), "is below rest", "longer");
  }
};

template <>
struct Shape<testing::Lamp> {
  using Lamp = testing::Lamp;
  static void Switch(Lamp& lamp, bool on) { lamp.on = on; }
  static void List(auto& f) {
    f("watts", &Lamp::watts, {.min = 1, .max = 100});
    f("colour", &Lamp::colour, {.filled = true, .hint = "white or blue"});
  }
  static void Complete(Lamp& lamp) { lamp.on = true; }
};

template <>
struct Shape<testing::House> {
  using House = testing::House;
  static void List(auto& f) {
    f("hall", &House::hall);
    f("porch", &House::porch);
    f.Form("garden", record::RawForm<&House::garden>{});
  }
  static void Check(const House& house, const record::Complain& complain) {
    if (house.hall.watts == 13) complain("", "has an unlucky hall", "12 or 14");
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
  EXPECT_EQ(ErrorOf(good + R"(,"colour":"green"})"), "it: /colour: 'green' is not known; red or blue");
  EXPECT_EQ(ErrorOf(good + R"(,"state":"taken"})"), "it: /state: 'taken' is not known; free or leased");
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

Result<Settings> SettingsOf(const std::string& fields) {
  return ParseRecord<Settings>(R"({"file":"/f","place":3)" + fields + "}", "it", UnknownFields::kRefuse);
}

std::string WrongWith(const std::string& fields) {
  const auto settings = SettingsOf(fields);
  return settings ? "read" : Describe(settings.error());
}

TEST(RecordTest, SettingsInTheWaysThatPeopleWriteThem) {
  const auto all =
      SettingsOf(R"(,"times":{"rest":5},"nick":"","ports":80,"share of it":7,"dns":{},"cni.dev/x":1)");
  ASSERT_TRUE(all) << Describe(all.error());
  EXPECT_EQ(
      *all,
      (Settings{.file = "/f", .rest = 5, .pause = 5, .ports = {80}, .position = 3, .inner = {.share = 7}}));
  EXPECT_EQ(SettingsOf(R"(,"ports":[80,81])")->ports, (std::vector<int>{80, 81}));
  EXPECT_EQ(SettingsOf(R"(,"times":{"pause":9})")->pause, 9);
  for (Settings settings :
       {*all, Settings{.file = "/f", .pause = 1, .nick = "n", .ports = {1, 2}, .word = "w"}}) {
    const auto text = FormatRecord(settings, "it");
    ASSERT_TRUE(text) << Describe(text.error());
    EXPECT_EQ(ParseRecord<Settings>(*text, "it", UnknownFields::kRefuse).value(), settings) << *text;
  }
}

TEST(RecordTest, SettingsAreRefusedWithTheWayOut) {
  EXPECT_EQ(WrongWith(R"(,"ports":[])"), "it: /ports: must not be empty; 80 or [80, 81]");
  EXPECT_EQ(WrongWith(R"(,"ports":0)").find("it: /ports: 0 is out of range 1.."), 0U);
  EXPECT_EQ(WrongWith(R"(,"ports":[1,0])").find("it: /ports/1: 0 is out of range 1.."), 0U);
  EXPECT_EQ(WrongWith(R"(,"times":{"rest":61})"), "it: /times/rest: 61 is out of range 0..60");
  EXPECT_EQ(WrongWith(R"(,"times":{"rest":5,"pause":4})"), "it: /times/pause: is below rest; longer");
  EXPECT_EQ(WrongWith(R"(,"times":{"paus":4})"), "it: /times/paus: unknown field; did you mean 'pause'?");
  EXPECT_EQ(WrongWith(R"(,"cni":1)").find("it: /cni: unknown field"), 0U);
  const auto error = ParseRecord<Settings>("{}", "it").error();
  EXPECT_EQ(Describe(error), "it: /file: is required; for example /x");
  EXPECT_EQ(Describe(ParseRecord<Settings>(R"({"file":"/f"})", "it").error()),
            "it: /place: is required; a number or a word");
}

House HouseOf(const std::string& text) {
  const auto house = ParseSection<House>(text, "it", "/a/b", nullptr);
  EXPECT_TRUE(house) << text << ": " << Describe(house.error());
  return house.value_or(House{});
}

TEST(RecordTest, AnObjectMayBeTrueOrFalseAndIsReadOverWhatItsPlaceHas) {
  EXPECT_EQ(HouseOf(""), House{});
  EXPECT_EQ(HouseOf("{}"), House{});
  EXPECT_EQ(HouseOf(R"({"hall": false})").hall, (Lamp{false, 40, "white"}));
  EXPECT_EQ(HouseOf(R"({"hall": {"watts": 60}})").hall, (Lamp{true, 60, "white"}));
  EXPECT_EQ(HouseOf(R"({"porch": true})").porch, (Lamp{true, 5, ""}));
  EXPECT_EQ(HouseOf(R"({"porch": {"colour": "blue"}})").porch, (Lamp{true, 5, "blue"}));
  EXPECT_EQ(HouseOf(R"({"porch": null, "garden": null})"), House{});
  EXPECT_EQ(HouseOf(R"({"garden": {"trees": [1]}})").garden, R"({"trees":[1]})");
  House house;
  house.porch = Lamp{true, 7, ""};
  house.garden = R"(["grass"])";
  const auto text = FormatRecord(house, "it");
  ASSERT_TRUE(text) << Describe(text.error());
  EXPECT_EQ(HouseOf(*text), house) << *text;
}

TEST(RecordTest, ASectionIsRefusedWithItsPlaceInTheWhole) {
  std::vector<Error> all;
  const auto refused = [&](const std::string& text) {
    all.clear();
    const auto house = ParseSection<House>(
        text, "it", "/a/b", &all, [](const House& read, const record::Complain& complain) {
          if (read.porch) complain(PointerOf("porch", "watts"), "would be too bright", "less");
        });
    EXPECT_FALSE(house) << text;
    return house ? std::string("read") : Describe(house.error());
  };
  EXPECT_EQ(refused(R"({"hall": 7})"), "it: /a/b/hall: is not an object, true or false but number");
  EXPECT_EQ(refused("[]"), "it: /a/b: is not an object but array");
  EXPECT_EQ(refused(R"({"hall": {"colour": ""}})"), "it: /a/b/hall/colour: must not be empty; white or blue");
  EXPECT_EQ(refused(R"({"hall": {"watts": 13}})"), "it: /a/b: has an unlucky hall; 12 or 14");
  EXPECT_EQ(refused(R"({"garten": 1, "porch": true})").find("it: /a/b/garten: unknown field"), 0U);
  ASSERT_EQ(all.size(), 2U) << "what only the caller knows is told beside it";
  EXPECT_EQ(Describe(all[1]), "it: /a/b/porch/watts: would be too bright; less");
  EXPECT_EQ(refused("{").find("it: no valid JSON"), 0U);
}

TEST(RecordTest, AFileThatCouldNotBeReadAgainIsNotWritten) {
  constexpr StateFile<Outer> kSmall{
      .path = "/run/railhead/outer.json", .what = "keeping it", .max_size = 100};
  const TempRoot temp;
  Outer outer = Small();
  ASSERT_TRUE(kSmall.Write(temp.root(), outer));
  outer.name = std::string(100, 'a');
  EXPECT_NE(kSmall.Write(temp.root(), outer).error().message.find("would be larger than 100 bytes"),
            std::string::npos);
  EXPECT_EQ(kSmall.Read(temp.root()).value(), Small());
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
