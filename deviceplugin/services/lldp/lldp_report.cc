#include "deviceplugin/services/lldp/lldp_report.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/json/json_reader.h"

namespace railhead::lldp {
namespace {

using Json = nlohmann::json;
using Wall = std::chrono::system_clock;

constexpr const char* kDirectory = "/run/railhead";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLastSecond = 253'402'300'799;  // of year 9999
constexpr std::array kNames = {std::pair{"unknown", Cabling::kUnknown},
                               std::pair{"unchecked", Cabling::kUnchecked},
                               std::pair{"right", Cabling::kRight}, std::pair{"wrong", Cabling::kWrong}};

std::int64_t SecondsOf(Wall::time_point time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

Wall::time_point TimeOf(std::int64_t seconds) {
  return Wall::time_point(std::chrono::seconds(seconds));
}

void AddNeighbour(const HeardNeighbour& heard, Json& json) {
  const LldpNeighbour& neighbour = heard.neighbour;
  // For whoever reads it: what the switch and its port are called.
  json["leaf"] = neighbour.Leaf();
  json["port"] = neighbour.Port();
  json["lldp"] = {{"chassisId", neighbour.chassis},
                  {"portId", neighbour.port},
                  {"ttl", neighbour.ttl.count()},
                  {"heard", SecondsOf(heard.heard)}};
  Json& lldp = json["lldp"];
  if (!neighbour.system_name.empty()) lldp["systemName"] = neighbour.system_name;
  if (!neighbour.port_description.empty()) lldp["portDescription"] = neighbour.port_description;
  if (neighbour.port_is_mac) lldp["portIsMac"] = true;
  if (neighbour.port_vlan) lldp["portVlan"] = *neighbour.port_vlan;
  if (neighbour.max_frame) lldp["maxFrame"] = *neighbour.max_frame;
}

Json AsJson(const RailLeaf& rail) {
  Json json = {{"rail", rail.rail},
               {"device", rail.device},
               {"pf", rail.pf},
               {"carrier", rail.carrier},
               {"cabling", NameOf(rail.cabling)}};
  if (!rail.because.empty()) json["because"] = rail.because;
  if (!rail.expected.empty()) json["expected"] = rail.expected;
  if (!rail.others.empty()) json["others"] = rail.others;
  if (rail.neighbour) AddNeighbour(*rail.neighbour, json);
  return json;
}

HeardNeighbour ReadNeighbour(JsonReader& reader) {
  HeardNeighbour heard;
  LldpNeighbour& neighbour = heard.neighbour;
  neighbour.chassis = reader.RequiredString("chassisId");
  neighbour.port = reader.RequiredString("portId");
  neighbour.ttl = std::chrono::seconds(reader.Int("ttl", 0, 65535).value_or(0));
  heard.heard = TimeOf(reader.Int("heard", 0, kLastSecond).value_or(0));
  neighbour.system_name = reader.String("systemName").value_or("");
  neighbour.port_description = reader.String("portDescription").value_or("");
  neighbour.port_is_mac = reader.Bool("portIsMac").value_or(false);
  if (const auto vlan = reader.Int("portVlan", 1, 4094)) neighbour.port_vlan = static_cast<int>(*vlan);
  if (const auto size = reader.Int("maxFrame", 1, 65535)) neighbour.max_frame = static_cast<int>(*size);
  return heard;
}

Cabling ReadCabling(JsonReader& reader) {
  const std::string name = reader.RequiredString("cabling");
  const auto* const found =
      std::ranges::find_if(kNames, [&](const auto& known) { return name == known.first; });
  if (found != kNames.end()) return found->second;
  reader.Fail("cabling", "'" + name + "' is not known");
  return Cabling::kUnknown;
}

RailLeaf ReadRail(JsonReader& reader) {
  RailLeaf rail;
  rail.rail = reader.RequiredString("rail");
  rail.device = reader.String("device").value_or("");
  rail.pf = reader.String("pf").value_or("");
  rail.carrier = reader.Bool("carrier").value_or(false);
  rail.expected = reader.Strings("expected").value_or(std::vector<std::string>{});
  rail.others = reader.Strings("others").value_or(std::vector<std::string>{});
  rail.cabling = ReadCabling(reader);
  rail.because = reader.String("because").value_or("");
  if (auto lldp = reader.Object("lldp")) rail.neighbour = ReadNeighbour(*lldp);
  return rail;
}

}  // namespace

std::string_view NameOf(Cabling cabling) {
  return kNames.at(static_cast<std::size_t>(cabling)).first;
}

const RailLeaf* LeafReport::Find(const std::string& rail) const {
  const auto found = std::ranges::find(rails, rail, &RailLeaf::rail);
  return found == rails.end() ? nullptr : &*found;
}

bool SaysTheSame(const LeafReport& a, const LeafReport& b) {
  return a.node == b.node && std::equal(a.rails.begin(), a.rails.end(), b.rails.begin(), b.rails.end(),
                                        [](RailLeaf one, RailLeaf other) {
                                          for (RailLeaf* rail : {&one, &other}) {
                                            if (rail->neighbour) rail->neighbour->heard = {};
                                          }
                                          return one == other;
                                        });
}

Json LeafReportAsJson(const LeafReport& report) {
  Json json = {{"version", kVersion},
               {"node", report.node},
               {"time", SecondsOf(report.time)},
               {"rails", Json::array()}};
  for (const RailLeaf& rail : report.rails) json["rails"].push_back(AsJson(rail));
  return json;
}

// Unknown keys are passed over: the file may be a newer railheadd's.
Result<LeafReport> ParseLeafReport(std::string_view text, const std::string& what) {
  const auto document = RH_TRY(JsonDocument::Parse(text, what));
  JsonReader reader = document.Root();
  (void)reader.Int("version", kVersion, kVersion);
  if (!reader.Has("version"))
    reader.Fail("version", "is required", "it is what `railctl leaves --json` prints");
  LeafReport report;
  report.node = reader.RequiredString("node");
  report.time = TimeOf(reader.Int("time", 0, kLastSecond).value_or(0));
  for (JsonReader& rail : reader.Objects("rails")) {
    report.rails.push_back(ReadRail(rail));
    const std::string& name = report.rails.back().rail;
    if (report.Find(name) != &report.rails.back()) rail.Fail("rail", "another rail is called '" + name + "'");
  }
  RH_TRY(reader.status());
  return report;
}

std::string LeafReportPath(const Root& root) {
  return root.Path(kDirectory) + "/leaves.json";
}

Result<std::optional<LeafReport>> ReadLeafReport(const Root& root) {
  const std::string path = LeafReportPath(root);
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return std::nullopt;
  return RH_TRY(ParseLeafReport(*text, path));
}

Result<void> WriteLeafReport(const Root& root, const LeafReport& report) {
  // Names of interfaces are any bytes.
  const std::string text =
      LeafReportAsJson(report).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  constexpr const char* kWhat = "writing down the rails' leaves";
  RH_TRY_WRAP(MakeStateFolder(root, root.Path(kDirectory)), kWhat);
  RH_TRY_WRAP(WriteAtomic(LeafReportPath(root), text, Sync::kVolatile, 0644), kWhat);
  return {};
}

namespace {

std::chrono::seconds LifeOf(const LldpNeighbour& neighbour) {
  return std::min(neighbour.ttl, NeighbourTable::kLongest);
}

}  // namespace

void NeighbourTable::Restore(const std::string& device, const HeardNeighbour& heard, const Time& time) {
  entries_[device] = {{heard, time.now + LifeOf(heard.neighbour), false}};
}

void NeighbourTable::Hear(const std::string& device, const LldpNeighbour& neighbour, const Time& time) {
  std::vector<Entry>& entries = entries_[device];
  const auto known = std::ranges::find_if(
      entries, [&](const Entry& entry) { return entry.heard.neighbour.IsSamePort(neighbour); });
  if (neighbour.ttl.count() == 0) {
    if (known == entries.end()) return;
    known->expires = std::min(known->expires, time.now + kGoodbye);
    known->sure = false;
    return;
  }
  const bool is_new = known == entries.end();
  const Entry entry{{neighbour, time.wall}, time.now + LifeOf(neighbour), true};
  if (!is_new) *known = entry;
  std::erase_if(entries, [](const Entry& one) { return !one.sure; });
  if (is_new && entries.size() < kMost) entries.push_back(entry);
}

void NeighbourTable::Tend(const std::string& device, bool hears, const Time& time) {
  const auto found = entries_.find(device);
  if (found == entries_.end()) return;
  if (hears) {
    std::erase_if(found->second, [&](const Entry& entry) { return entry.expires <= time.now; });
    return;
  }
  for (Entry& entry : found->second) {
    entry.expires = time.now + LifeOf(entry.heard.neighbour);
    entry.sure = false;
  }
}

void NeighbourTable::KeepOnly(const std::set<std::string>& devices) {
  std::erase_if(entries_, [&](const auto& of_device) { return !devices.contains(of_device.first); });
}

std::vector<HeardNeighbour> NeighbourTable::Of(const std::string& device) const {
  std::vector<HeardNeighbour> heard;
  const auto found = entries_.find(device);
  if (found == entries_.end()) return heard;
  for (const Entry& entry : found->second) heard.push_back(entry.heard);
  return heard;
}

}  // namespace railhead::lldp
