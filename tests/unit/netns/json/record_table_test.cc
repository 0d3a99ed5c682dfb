// Tables of records: what a cell says, and which columns there are.
#include "netns/json/record_table.h"

#include <gtest/gtest.h>

#include "netns/json/record_io.h"

namespace railhead::testing {

struct Pilot {
  std::string name;
  std::optional<int> trips;

  static void List(auto& f) {
    f("name", &Pilot::name, {.column = "PILOT"});
    f("trips", &Pilot::trips, {.need = Need::kNull, .column = "TRIPS"});
  }
};

struct Train {
  std::string name;
  std::vector<std::string> stops;
  bool late = false;
  bool open = true;
  std::optional<double> load;
  std::chrono::system_clock::time_point since;
  std::optional<Pilot> pilot;
  const Pilot* second = nullptr;
  std::string note;

  static void List(auto& f) {
    f("name", &Train::name, {.need = Need::kRequired, .column = "TRAIN"});
    f("stops", &Train::stops, {.column = "STOPS"});
    f("late", &Train::late, {.column = "LATE"});
    f("open", &Train::open, {.no = "closed", .yes = "open", .column = "DOORS"});
    f("load", &Train::load, {.column = "LOAD", .wide = kWide});
    f("since", &Train::since, {.need = Need::kSparse, .column = "SINCE"});
    f.Part(&Train::pilot);
    f.Part(&Train::second, [](auto& part) { part.Column("SECOND", &Pilot::name); });
    f.Group("more",
            [](auto& part) { part("note", &Train::note, {.need = Need::kSparse, .column = "NOTE"}); });
    f.Output("stopCount", [](const Train& train) { return train.stops.size(); }, {.column = "COUNT"});
    f.Output("word", [](const Train&) -> std::string_view { return "express"; });
    f.Column(
        "WHERE", [](const Train& train) { return train.stops.empty() ? "" : train.stops.back(); }, kWide);
  }
};

namespace {

TEST(TableTest, CellsAreWhatTheFieldsSay) {
  const Pilot second{"Ben", 7};
  Train full{
      "ICE 1", {"Bonn", "Köln"}, true, false, 0.5, std::chrono::system_clock::now() - std::chrono::hours(3)};
  full.pilot = Pilot{"Ann", 3};
  full.second = &second;
  full.note = "two\nlines";
  EXPECT_EQ(TableOf(std::vector{full, Train{}}),
            (std::vector<Row>{
                {"TRAIN", "STOPS", "LATE", "DOORS", "SINCE", "PILOT", "TRIPS", "SECOND", "NOTE", "COUNT"},
                {"ICE 1", "Bonn,Köln", "yes", "closed", "3h", "Ann", "3", "Ben", "two\nlines", "2"},
                {"-", "-", "no", "open", "-", "-", "-", "-", "-", "0"}}));
}

TEST(TableTest, WideOnesHaveMoreColumns) {
  Train train{"ICE 1", {"Bonn"}};
  train.load = 0.25;
  const auto rows = TableOf(std::vector{train}, kWide);
  EXPECT_EQ(rows[0].back(), "WHERE");
  EXPECT_EQ(rows[1].back(), "Bonn");
  EXPECT_EQ(rows[0][4], "LOAD");
  EXPECT_EQ(rows[1][4], "0.25");
  EXPECT_EQ(rows[0].size(), rows[1].size());
  EXPECT_EQ(TableOf(std::vector<Train>{}).size(), 1U) << "the headings";
}

TEST(TableTest, JsonHasNoColumns) {
  Train train{"ICE 1", {}};
  EXPECT_EQ(ToJson(train).dump(),
            R"({"name":"ICE 1","stops":[],"late":false,"open":"open","stopCount":0,"word":"express"})");
  train.pilot = Pilot{"Ann", std::nullopt};
  train.note = "x";
  EXPECT_EQ(ToJson(train).dump(),
            R"({"name":"Ann","stops":[],"late":false,"open":"open","trips":null,"more":{"note":"x"},)"
            R"("stopCount":0,"word":"express"})");
}

TEST(TableTest, Ages) {
  const auto before = [](std::chrono::seconds time) {
    return AgeOf(std::chrono::system_clock::now() - time);
  };
  EXPECT_EQ(before(std::chrono::seconds(119)), "119s");
  EXPECT_EQ(before(std::chrono::minutes(119)), "119m");
  EXPECT_EQ(before(std::chrono::hours(47)), "47h");
  EXPECT_EQ(before(std::chrono::hours(24 * 9)), "9d");
  EXPECT_EQ(before(std::chrono::hours(-1)), "0s") << "by another clock";
  EXPECT_EQ(AgeOf({}), "-");
}

TEST(TableTest, ColumnsAreAligned) {
  EXPECT_EQ(Aligned({{"A", "B", "C"}, {"long", "", "x"}, {"s", "y"}}, " "),
            " A     B  C\n long     x\n s     y\n");
}

TEST(ErrorTest, HasOneForm) {
  EXPECT_EQ(ToJson(Error{ErrorCode::kBusy, "it is", "", 0}).dump(), R"({"code":"busy","message":"it is"})");
  EXPECT_EQ(ToJson(Error{ErrorCode::kBusy, "it is", "wait", 0}).dump(),
            R"({"code":"busy","message":"it is","hint":"wait"})");
}

}  // namespace
}  // namespace railhead::testing
