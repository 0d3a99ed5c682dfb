// LeafReport: which switch port each of this node's rails hangs on, and whether it is the right one.
//
// railheadd makes it and writes it to /run/railhead/leaves.json, gone with the boot, for
// railctl and for its own next start; `railctl leaves -o json` prints the same.
// Threads: values and thread-safe functions. Errors of the readers: kMalformed, kInvalid.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/record.h"
#include "netns/json/state_file.h"
#include "netns/packet/lldp.h"

namespace railhead::lldp {

enum class Cabling : std::uint8_t {
  kUnknown,    // nothing was heard
  kUnchecked,  // the fabric does not say where the rail belongs
  kRight,
  kWrong,
};

struct HeardNeighbour {
  LldpNeighbour neighbour;
  std::chrono::system_clock::time_point heard;  // last

  bool operator==(const HeardNeighbour&) const = default;
};

struct RailLeaf {
  std::string rail;
  std::string device;  // PCI address of its PF; "": this node has none
  std::string pf;      // its network device, also while that is in a pod; "": unknown
  bool carrier = false;
  std::vector<std::string> expected;        // Rail::leaves
  std::optional<HeardNeighbour> neighbour;  // while the rail has no carrier: the last one
  std::vector<std::string> others;          // "LEAF PORT": who else is heard there
  Cabling cabling = Cabling::kUnknown;
  std::string because;  // of kWrong and kUnknown, for people; may be empty

  bool operator==(const RailLeaf&) const = default;
};

struct LeafReport {
  std::string node;  // as Kubernetes knows it
  std::chrono::system_clock::time_point time;
  std::vector<RailLeaf> rails;  // in the fabric's order

  [[nodiscard]] const RailLeaf* Find(const std::string& rail) const;
  bool operator==(const LeafReport&) const = default;
};

// railheadd writes it every half a minute at least.
inline constexpr StateFile<LeafReport> kLeafFile{
    .path = "/run/railhead/leaves.json",
    .what = "writing down the rails' leaves",
    .writer = "railheadd writes it when it runs with a fabric.json",
    .life = std::chrono::seconds{120},
};

// The same but for when it was made and when neighbours were heard last.
bool SaysTheSame(const LeafReport& a, const LeafReport& b);

// "wrong: swapped with rail1; also heard: leaf7 swp3", for people.
std::string CablingOf(const RailLeaf& rail);
// `what` names the text in errors.
Result<LeafReport> ParseLeafReport(std::string_view text, const std::string& what);

// NeighbourTable: who was heard at each PF, and for how long that holds.
//
// As IEEE 802.1AB has it a neighbour is forgotten when its time to live is over; with these differences,
// since the question here is where a cable ends, and not what can be reached through it now:
//   while a PF cannot hear (no carrier, in a pod, railheadd not running) the time stands still: a dead
//     rail keeps the name of the leaf that it hung on, which is what one wants to know of a dead rail;
//   what is heard after that replaces all of before, since the cable may be another one;
//   a neighbour that says that it ends (time to live 0, as switches do when they are shut down) is kept
//     for another minute, in which its ports go dark.
// A port has one neighbour, but frames may come from elsewhere (a hub; NICs whose switch lets a VF's pass):
// the one that was there first stays the neighbour as long as it is heard, the others are listed, kMost
// in all. Nobody's frame holds longer than kLongest.
// Threads: a value; one at a time.

class NeighbourTable {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMost = 4;
  static constexpr std::chrono::seconds kLongest{3600};
  static constexpr std::chrono::seconds kGoodbye{60};

  struct Time {
    Clock::time_point now;
    std::chrono::system_clock::time_point wall;
    static Time Now() { return {Clock::now(), std::chrono::system_clock::now()}; }
  };

  // PFs by their PCI address. From an earlier life: as if the PF could not hear until now.
  void Restore(const std::string& device, const HeardNeighbour& heard, const Time& time);
  void Hear(const std::string& device, const LldpNeighbour& neighbour, const Time& time);
  // At each look: `hears` is false when the PF cannot hear now, or could not since the look before.
  void Tend(const std::string& device, bool hears, const Time& time);
  // Forgets all other PFs.
  void KeepOnly(const std::set<std::string>& devices);

  // The neighbour first, then the others.
  [[nodiscard]] std::vector<HeardNeighbour> Of(const std::string& device) const;

 private:
  struct Entry {
    HeardNeighbour heard;
    Clock::time_point expires;
    bool sure = true;  // heard since the PF could hear
  };
  std::map<std::string, std::vector<Entry>> entries_;
};

}  // namespace railhead::lldp

template <>
struct railhead::Names<railhead::lldp::Cabling> {
  static constexpr std::array kAll = {
      std::pair{"unknown", lldp::Cabling::kUnknown}, std::pair{"unchecked", lldp::Cabling::kUnchecked},
      std::pair{"right", lldp::Cabling::kRight}, std::pair{"wrong", lldp::Cabling::kWrong}};
};

template <>
struct railhead::Shape<railhead::LldpNeighbour> {
  static void List(auto& f) {
    f("chassisId", &LldpNeighbour::chassis, kRequiredField);
    f("portId", &LldpNeighbour::port, kRequiredField);
    f("ttl", &LldpNeighbour::ttl, {.min = 0, .max = 65535});
    f("systemName", &LldpNeighbour::system_name, kSparseField);
    f("portDescription", &LldpNeighbour::port_description, kSparseField);
    f("portIsMac", &LldpNeighbour::port_is_mac, kSparseField);
    f("portVlan", &LldpNeighbour::port_vlan, {.min = 1, .max = 4094});
    f("maxFrame", &LldpNeighbour::max_frame, {.min = 1, .max = 65535});
  }
};

template <>
struct railhead::Shape<railhead::lldp::HeardNeighbour> {
  static void List(auto& f) {
    f.Part(&lldp::HeardNeighbour::neighbour);
    f("heard", &lldp::HeardNeighbour::heard, kEpochSeconds);
  }
};

template <>
struct railhead::Shape<railhead::lldp::RailLeaf> {
  using RailLeaf = lldp::RailLeaf;
  static void List(auto& f) {
    f("rail", &RailLeaf::rail, {.need = Need::kRequired, .column = "RAIL"});
    f("device", &RailLeaf::device, {.column = "DEVICE", .wide = kWide});
    f("pf", &RailLeaf::pf, {.column = "PF"});
    f("carrier", &RailLeaf::carrier);
    f("cabling", &RailLeaf::cabling, kRequiredField);
    f("because", &RailLeaf::because, kSparseField);
    f("expected", &RailLeaf::expected, {.need = Need::kSparse, .column = "EXPECTED", .wide = kWide});
    f("others", &RailLeaf::others, kSparseField);
    f("lldp", &RailLeaf::neighbour);
    f.Part(&RailLeaf::neighbour, [](auto& heard) {
      using Heard = lldp::HeardNeighbour;
      heard.Shown("leaf", [](const Heard& it) { return it.neighbour.Leaf(); }, {.column = "LEAF"});
      heard.Shown("port", [](const Heard& it) { return it.neighbour.Port(); }, {.column = "PORT"});
      heard.Column("AGE", &Heard::heard);
    });
    f.Column("CABLING", &lldp::CablingOf);
  }
  static std::string Key(const RailLeaf& rail) { return rail.rail; }
};

template <>
struct railhead::Shape<railhead::lldp::LeafReport> {
  static void List(auto& f) {
    f.Version(1, "it is what `railctl leaves -o json` prints");
    f("node", &lldp::LeafReport::node, kRequiredField);
    f("time", &lldp::LeafReport::time, kEpochSeconds);
    f("rails", &lldp::LeafReport::rails);
  }
};
