// LldpReport: the switch port that each of this node's rails is connected to, and whether it is the right
// one.
//
// railheadd writes it to /run/railhead/lldp.json, which is lost with the boot. railctl reads it, and so does
// railheadd's next start. `railctl lldp -o json` prints the same.
// Threads: values and thread-safe functions. Errors of the readers: kMalformed, kInvalid.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/record.h"
#include "netns/json/state_file.h"
#include "netns/packet/lldp_neighbor.h"

namespace railhead::lldp {

enum class Cabling : std::uint8_t {
  kUnknown,    // no LLDP frame has come
  kUnchecked,  // the rail has no expectedSwitches
  kRight,
  kWrong,
};

struct HeardNeighbor {
  LldpNeighbor neighbor;
  std::chrono::system_clock::time_point heard;  // last

  bool operator==(const HeardNeighbor&) const = default;
};

struct RailNeighbor {
  std::string rail;
  std::string device;  // PCI address of its PF; "": this node has none
  std::string pf;      // its network device, also while that is in a pod; "": unknown
  bool carrier = false;
  std::vector<std::string> expected;      // Rail::expected_switches
  std::optional<HeardNeighbor> neighbor;  // while the rail has no carrier: the last one
  std::vector<std::string> others;        // "SWITCH PORT" of further neighbors on the link
  Cabling cabling = Cabling::kUnknown;
  std::string because;  // of kWrong and kUnknown, for people; may be empty

  bool operator==(const RailNeighbor&) const = default;
};

struct LldpReport {
  std::string node;  // as Kubernetes knows it
  std::chrono::system_clock::time_point time;
  std::vector<RailNeighbor> rails;  // in the fabric's order

  [[nodiscard]] const RailNeighbor* Find(const std::string& rail) const;
  bool operator==(const LldpReport&) const = default;
};

// railheadd writes it every half minute or more often.
inline constexpr StateFile<LldpReport> kLldpFile{
    .path = "/run/railhead/lldp.json",
    .what = "writing the LLDP report",
    .writer = "railheadd writes it when it runs with a fabric.json",
    .life = std::chrono::seconds{120},
};

// Equal except for the time of the report and of the latest frames.
bool SaysTheSame(const LldpReport& a, const LldpReport& b);

// "wrong: swapped with rail1; also heard: leaf7 swp3", for people.
std::string CablingOf(const RailNeighbor& rail);

}  // namespace railhead::lldp

template <>
struct railhead::Names<railhead::lldp::Cabling> {
  static constexpr std::array kAll = {
      std::pair{"unknown", lldp::Cabling::kUnknown}, std::pair{"unchecked", lldp::Cabling::kUnchecked},
      std::pair{"right", lldp::Cabling::kRight}, std::pair{"wrong", lldp::Cabling::kWrong}};
};

template <>
struct railhead::Shape<railhead::LldpNeighbor> {
  static void List(auto& f) {
    f("chassisId", &LldpNeighbor::chassis, kRequiredField);
    f("portId", &LldpNeighbor::port, kRequiredField);
    f("ttl", &LldpNeighbor::ttl, {.min = 0, .max = 65535});
    f("systemName", &LldpNeighbor::system_name, kSparseField);
    f("portDescription", &LldpNeighbor::port_description, kSparseField);
    f("portIsMac", &LldpNeighbor::port_is_mac, kSparseField);
    f("portVlan", &LldpNeighbor::port_vlan, {.min = 1, .max = 4094});
    f("vlans", &LldpNeighbor::vlans, {.need = Need::kSparse, .min = 1, .max = 4094});
    f("maxFrame", &LldpNeighbor::max_frame, {.min = 1, .max = 65535});
  }
};

template <>
struct railhead::Shape<railhead::lldp::HeardNeighbor> {
  static void List(auto& f) {
    f.Part(&lldp::HeardNeighbor::neighbor);
    f("heard", &lldp::HeardNeighbor::heard, kEpochSeconds);
  }
};

template <>
struct railhead::Shape<railhead::lldp::RailNeighbor> {
  using RailNeighbor = lldp::RailNeighbor;
  static void List(auto& f) {
    f("rail", &RailNeighbor::rail, {.need = Need::kRequired, .column = "RAIL"});
    f("device", &RailNeighbor::device, {.column = "DEVICE", .wide = kWide});
    f("pf", &RailNeighbor::pf, {.column = "PF"});
    f("carrier", &RailNeighbor::carrier);
    f("cabling", &RailNeighbor::cabling, kRequiredField);
    f("because", &RailNeighbor::because, kSparseField);
    f("expected", &RailNeighbor::expected, {.need = Need::kSparse, .column = "EXPECTED", .wide = kWide});
    f("others", &RailNeighbor::others, kSparseField);
    f("lldp", &RailNeighbor::neighbor);
    f.Part(&RailNeighbor::neighbor, [](auto& heard) {
      using Heard = lldp::HeardNeighbor;
      heard.Output("switch", [](const Heard& it) { return it.neighbor.SwitchName(); }, {.column = "SWITCH"});
      heard.Output("port", [](const Heard& it) { return it.neighbor.Port(); }, {.column = "PORT"});
      heard.Column("AGE", &Heard::heard);
    });
    f.Column("CABLING", &lldp::CablingOf);
  }
  static std::string Key(const RailNeighbor& rail) { return rail.rail; }
};

template <>
struct railhead::Shape<railhead::lldp::LldpReport> {
  static void List(auto& f) {
    f.Version(1, "it is what `railctl lldp -o json` prints");
    f("node", &lldp::LldpReport::node, kRequiredField);
    f("time", &lldp::LldpReport::time, kEpochSeconds);
    f("rails", &lldp::LldpReport::rails);
  }
};
