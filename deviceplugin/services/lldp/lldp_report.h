// LeafReport: which switch port each of this node's rails hangs on, and whether it is the right one.
//
// railheadd makes it (leaf_watch.h) and writes it to /run/railhead/leaves.json, gone with the boot, for
// railctl and for its own next start; `railctl leaves --json` prints the same.
// Threads: values and thread-safe functions. Errors of the readers: kMalformed, kInvalid.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/packet/lldp.h"

namespace railhead {

enum class Cabling : std::uint8_t {
  kUnknown,    // nothing was heard
  kUnchecked,  // the fabric does not say where the rail belongs
  kRight,
  kWrong,
};

// "unknown", "unchecked", "right", "wrong"
std::string_view NameOf(Cabling cabling);

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
};

// railheadd writes it every half a minute at least: one that is older than this tells of a railheadd that
// ended.
inline constexpr std::chrono::seconds kLeafReportLife{120};

// The same but for when it was made and when neighbours were heard last.
bool SaysTheSame(const LeafReport& a, const LeafReport& b);

// In bytes: room for more rails than a node has.
inline constexpr std::size_t kMaxLeafReport = std::size_t{4} << 20;

nlohmann::json LeafReportAsJson(const LeafReport& report);
// `what` names the text in errors.
Result<LeafReport> ParseLeafReport(std::string_view text, const std::string& what);

std::string LeafReportPath(const Root& root);
// nullopt: there is none.
Result<std::optional<LeafReport>> ReadLeafReport(const Root& root);
Result<void> WriteLeafReport(const Root& root, const LeafReport& report);

}  // namespace railhead
