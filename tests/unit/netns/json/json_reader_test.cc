#include "netns/json/json_reader.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace railhead {
namespace {

std::string ParseError(const std::string& text) {
  const auto document = JsonDocument::Parse(text, "it");
  return document ? "" : document.error().message;
}

// The message of the first error that `read` finds in `text`; "" for none.
template <typename F>
std::string ReadError(const std::string& text, F&& read) {
  const auto document = JsonDocument::Parse(text, "it");
  if (!document) return "not JSON: " + document.error().message;
  JsonReader reader = document->Root();
  read(reader);
  const auto status = reader.status();
  return status ? "" : Describe(status.error());
}

TEST(JsonDocumentTest, RefusesWhatIsNoJson) {
  for (const char* text : {"", " ", "{", "{}{}", "nul", "{\"a\":}", "{'a':1}", "[1,]", "{\"a\":1,}", "\xff",
                           "{\"a\":\"\xc3\x28\"}", "{\"a\":01}", "// comment\n{}"}) {
    const auto document = JsonDocument::Parse(text, "it");
    ASSERT_FALSE(document) << text;
    EXPECT_EQ(document.error().code, ErrorCode::kMalformed) << text;
    EXPECT_EQ(document.error().message.rfind("it: no valid JSON at byte ", 0), 0U)
        << document.error().message;
  }
}

// The place of a syntax error: "byte N", and in a text of several lines also the line and column.
std::string PlaceOfError(const std::string& text) {
  const std::string error = ParseError(text);
  constexpr std::string_view kBegin = "it: no valid JSON at ";
  return error.starts_with(kBegin) ? error.substr(kBegin.size(), error.find(" near ") - kBegin.size())
                                   : error;
}

TEST(JsonDocumentTest, SyntaxErrorsNameLineAndColumn) {
  EXPECT_EQ(PlaceOfError("{\"a\" 1}"), "byte 6");
  EXPECT_EQ(PlaceOfError("{\"a\" 1}\n"), "byte 6") << "one line: the byte is the column";
  EXPECT_EQ(PlaceOfError("{\"a\" 1,\n\"b\": 2}"), "byte 6 (line 1, column 6)");
  EXPECT_EQ(PlaceOfError("{\n  \"a\": 1\n  \"b\": 2\n}\n"), "byte 16 (line 3, column 5)");
  EXPECT_EQ(PlaceOfError("{\r\n  \"a\": ?\r\n}"), "byte 11 (line 2, column 8)");
  EXPECT_EQ(PlaceOfError("{\n\"a\": \"x\n\"}"), "byte 10 (line 2, column 8)") << "a line end within a string";
  EXPECT_EQ(PlaceOfError("{\n  \"a\": 1\n"), "byte 12 (line 3, column 1)") << "where the end is missing";
  EXPECT_EQ(PlaceOfError("\n\n"), "byte 3");
}

// A text in which `place` holds the faulty value is refused there, wherever that is.
TEST(JsonDocumentTest, EveryRefusalNamesItsPlace) {
  struct Case {
    std::string before;  // the fault's value follows
    std::string place;
  };
  for (const Case& one : std::vector<Case>{{"", ""},
                                           {R"({"a":)", "/a"},
                                           {"[1,[],", "/2"},
                                           {R"({"a":{"b":[{},{"c~d/e":)", "/a/b/1/c~0d~1e"},
                                           {R"({"z":{"k":1},"a":{"k":2},"k":[[[{"":)", "/k/0/0/0/"}}) {
    EXPECT_EQ(ParseError(one.before + R"({"x":1,"y":{"x":2},"x":3)"),
              "it: " + one.place + "/x: is there twice");
    EXPECT_EQ(ParseError(one.before + R"("a\u0000")"),
              "it: " + (one.place.empty() ? "/" : one.place) + ": holds a NUL character");
    EXPECT_EQ(ParseError(one.before + R"({"a\u0000":1)"),
              "it: " + (one.place.empty() ? "/" : one.place) + ": the name of a field holds a NUL character");
  }
  const auto part = JsonDocument::Parse(R"({"a":[{"b":1,"b":1}]})", "it", JsonDocument::kMaxSize, "/health");
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().message, "it: /health/a/0/b: is there twice");
}

TEST(JsonDocumentTest, IsWhatWasWritten) {
  for (
      const char* text :
      {"{}", "[]", "null", "\"a\"",
       R"([[], {}, [1, -2, 3.5, 1e3, true, false, null, "x"], 18446744073709551615])",
       R"({"a": {"b": [{"c": {"d": []}, "e": "\u00e4\n"}, {"c": 1}], "f": null}, "": {"": [[[]]]}, "b": -9223372036854775808})"}) {
    const auto document = JsonDocument::Parse(text, "it");
    ASSERT_TRUE(document) << document.error().message;
    EXPECT_EQ(document->json(), nlohmann::json::parse(text)) << text;
    EXPECT_EQ(document->json().dump(), nlohmann::json::parse(text).dump());
  }
}

TEST(JsonDocumentTest, RefusesDuplicateKeysAtAnyDepth) {
  EXPECT_EQ(ParseError(R"({"vlan":1,"vlan":2})"), "it: /vlan: is there twice");
  EXPECT_EQ(ParseError(R"({"a":[{"b":{"c":1,"c":1}}]})"), "it: /a/0/b/c: is there twice");
  EXPECT_EQ(ParseError(R"({"a":{"x":1},"b":{"x":1},"x":2})"), "") << "different objects";
}

TEST(JsonDocumentTest, BoundsDepthAndSize) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  std::string deep = "it: ";
  for (int i = 0; i < 32; ++i) deep += "/0";
  deep += ": nested deeper than 32";
  EXPECT_EQ(ParseError(nested(32)), "");
  EXPECT_EQ(ParseError(nested(33)), deep);
  EXPECT_EQ(ParseError(std::string(500000, '[')), deep);
  const std::string exactly = "\"" + std::string(JsonDocument::kMaxSize - 2, 'x') + "\"";
  EXPECT_EQ(ParseError(exactly), "");
  EXPECT_EQ(ParseError(exactly + " "), "it: larger than 1048576 bytes");
}

TEST(JsonReaderTest, RootMustBeAnObject) {
  for (const char* text : {"[]", "1", "\"a\"", "null", "true"}) {
    EXPECT_NE(ReadError(text, [](JsonReader&) {}).find("it: /: is not an object but "), std::string::npos);
  }
}

TEST(JsonReaderTest, NullIsAbsent) {
  EXPECT_EQ(ReadError(R"({"a":null,"b":null,"c":null,"d":null,"e":null,"f":null})",
                      [](JsonReader& reader) {
                        EXPECT_EQ(reader.String("a"), std::nullopt);
                        EXPECT_EQ(reader.Int("b", 0, 1), std::nullopt);
                        EXPECT_EQ(reader.Bool("c"), std::nullopt);
                        EXPECT_FALSE(reader.Object("d"));
                        EXPECT_TRUE(reader.Objects("e").empty());
                        EXPECT_EQ(reader.Strings("f"), std::nullopt);
                        EXPECT_FALSE(reader.Has("a"));
                        reader.Close();
                      }),
            "");
}

TEST(JsonReaderTest, IntegersAreWholeAndInRange) {
  const auto vlan = [](const std::string& value) {
    return ReadError("{\"vlan\":" + value + "}",
                     [](JsonReader& reader) { (void)reader.Int("vlan", 0, 4094); });
  };
  EXPECT_EQ(vlan("0"), "");
  EXPECT_EQ(vlan("4094"), "");
  EXPECT_EQ(vlan("4095"), "it: /vlan: 4095 is out of range 0..4094");
  EXPECT_EQ(vlan("-1"), "it: /vlan: -1 is out of range 0..4094");
  EXPECT_EQ(vlan("18446744073709551615"), "it: /vlan: 18446744073709551615 is out of range 0..4094");
  EXPECT_EQ(vlan("99999999999999999999"), "it: /vlan: is not an integer but a fraction");
  EXPECT_EQ(vlan("100.0"), "it: /vlan: is not an integer but a fraction");
  EXPECT_EQ(vlan("1e2"), "it: /vlan: is not an integer but a fraction");
  EXPECT_EQ(vlan("\"100\""), "it: /vlan: is not an integer but string");
  EXPECT_EQ(vlan("true"), "it: /vlan: is not an integer but boolean");
  EXPECT_EQ(vlan("[1]"), "it: /vlan: is not an integer but array");
}

TEST(JsonReaderTest, WrongTypesNameTheWantedOne) {
  const auto wrong = [](auto&& read) { return ReadError(R"({"a":{"b":1.5,"l":["x",2],"o":[1]}})", read); };
  EXPECT_EQ(wrong([](JsonReader& r) { (void)r.String("a"); }), "it: /a: is not a string but object");
  EXPECT_EQ(wrong([](JsonReader& r) { (void)r.Bool("a"); }), "it: /a: is not true or false but object");
  EXPECT_EQ(wrong([](JsonReader& r) { (void)r.Strings("a"); }),
            "it: /a: is not a list of strings but object");
  EXPECT_EQ(wrong([](JsonReader& r) { (void)r.Objects("a"); }),
            "it: /a: is not a list of objects but object");
  EXPECT_EQ(wrong([](JsonReader& r) { (void)r.Object("a")->Object("b"); }),
            "it: /a/b: is not an object but a fraction");
  EXPECT_EQ(wrong([](JsonReader& r) { (void)r.Object("a")->Strings("l"); }),
            "it: /a/l/1: is not a string but number");
  EXPECT_EQ(wrong([](JsonReader& r) { (void)r.Object("a")->Objects("o"); }),
            "it: /a/o/0: is not an object but number");
}

TEST(JsonReaderTest, PointersEscape) {
  EXPECT_EQ(ReadError(R"({"a/b":{"c~d":1}})",
                      [](JsonReader& reader) { (void)reader.Object("a/b")->String("c~d"); }),
            "it: /a~1b/c~0d: is not a string but number");
}

TEST(JsonReaderTest, PointersCountListItems) {
  EXPECT_EQ(ReadError(R"({"rails":[{"vlan":1},{"vlan":4095}]})",
                      [](JsonReader& reader) {
                        for (JsonReader& rail : reader.Objects("rails")) (void)rail.Int("vlan", 0, 4094);
                      }),
            "it: /rails/1/vlan: 4095 is out of range 0..4094");
}

TEST(JsonReaderTest, UnknownFieldsNameTheNearest) {
  const auto close = [](const std::string& text) {
    return ReadError(text, [](JsonReader& reader) {
      (void)reader.Raw("vlan");
      (void)reader.Int("vlan", 0, 4094);
      (void)reader.String("mac");
      reader.Ignore("ipam");
      reader.Close();
    });
  };
  EXPECT_EQ(close(R"({"vlan":1,"mac":"x","ipam":{}})"), "");
  EXPECT_EQ(close(R"({"vlna":1})"), "it: /vlna: unknown field; did you mean 'vlan'?");
  EXPECT_EQ(close(R"({"VLAN":1})"), "it: /VLAN: unknown field; did you mean 'vlan'?");
  EXPECT_EQ(close(R"({"bandwidth":1})"), "it: /bandwidth: unknown field; known here: vlan, mac, ipam");
}

TEST(JsonReaderTest, FirstErrorSticks) {
  EXPECT_EQ(ReadError(R"({"a":"x","b":"y"})",
                      [](JsonReader& reader) {
                        EXPECT_EQ(reader.Int("a", 0, 1), std::nullopt);
                        EXPECT_EQ(reader.Int("b", 0, 1), std::nullopt);
                        reader.Fail("c", "later");
                      }),
            "it: /a: is not an integer but string");
}

TEST(JsonReaderTest, RequiredStrings) {
  const auto required = [](const std::string& text) {
    return ReadError(text, [](JsonReader& reader) { (void)reader.RequiredString("name"); });
  };
  EXPECT_EQ(required(R"({"name":"x"})"), "");
  EXPECT_EQ(required("{}"), "it: /name: is required and must not be empty");
  EXPECT_EQ(required(R"({"name":""})"), "it: /name: is required and must not be empty");
  EXPECT_EQ(required(R"({"name":1})"), "it: /name: is not a string but number");
}

TEST(JsonReaderTest, TellsAllErrorsButNotTheirConsequences) {
  const auto document = JsonDocument::Parse(R"({"a": 1, "b": {"c": 2, "d": 3}, "e": [{"f": 4}]})", "x");
  ASSERT_TRUE(document);
  JsonReader root = document->Root();
  (void)root.RequiredString("a");  // no string, and so none that is required
  auto b = root.Object("b");
  ASSERT_TRUE(b);
  (void)b->Int("c", 5, 9);
  b->Close();
  root.Fail("b", "lacks what is wrong");
  for (JsonReader& e : root.Objects("e")) {
    e.Fail("", "is wrong as a whole");
    e.Close();
  }
  root.Close();
  std::vector<std::string> messages;
  for (const Error& error : root.errors()) messages.push_back(error.message);
  EXPECT_EQ(messages,
            (std::vector<std::string>{"x: /a: is not a string but number", "x: /b/c: 2 is out of range 5..9",
                                      "x: /b/d: unknown field", "x: /e/0: is wrong as a whole"}));
  EXPECT_EQ(root.status().error().message, messages.front());
}

}  // namespace
}  // namespace railhead
