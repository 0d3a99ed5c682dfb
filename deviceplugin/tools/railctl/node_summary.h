// NodeSummary: the report of `railctl status`: a verdict on this node, and the faults, the worst first.
//
// Each check reads one thing that railheadd, the plugins or the kernel keep, and makes one finding. What
// cannot be read is a finding, too. The checks of preflight are taken as they are; checks that take long or
// need other nodes (doctor, RDMA tests) are left to preflight.
// Ownership: values. Threads: one; Summarize() asks railheadd over HTTP for two seconds at most.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/support/http/http_client.h"
#include "deviceplugin/tools/railctl/address_report.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead::railctl {

// In the order of severity.
enum class Severity : std::uint8_t {
  kFine,
  kUnknown,   // it could not be read
  kDegraded,  // a part of the node's rails, devices or addresses cannot be used
  kBroken,    // pods cannot get NICs, or lose them
};

enum class NodeVerdict : std::uint8_t { kOk, kDegraded, kBroken };

struct SummaryFinding {
  std::string check;
  Severity severity = Severity::kFine;
  std::vector<std::string> details;
  std::string next;  // a command, or what to do; "" of what is fine

  // The worst counts, and what to do about it.
  void Add(Severity of_detail, std::string detail, const std::string& what_next = {});

  static void List(auto& f) {
    f("check", &SummaryFinding::check);
    f("severity", &SummaryFinding::severity);
    f("details", &SummaryFinding::details);
    f("next", &SummaryFinding::next, kSparseField);
  }
};

struct NodeSummary {
  std::string node;
  std::size_t rails = 0;
  std::size_t offered = 0;  // devices
  std::size_t free = 0;
  std::size_t in_use = 0;
  std::size_t pods = 0;
  std::vector<SummaryFinding> findings;  // the worst first

  [[nodiscard]] NodeVerdict Verdict() const;

  static void List(auto& f) {
    f("node", &NodeSummary::node);
    f.Output("verdict", &NodeSummary::Verdict);
    f("rails", &NodeSummary::rails);
    f("devices", &NodeSummary::offered);
    f("free", &NodeSummary::free);
    f("inUse", &NodeSummary::in_use);
    f("pods", &NodeSummary::pods);
    f("findings", &NodeSummary::findings);
  }
};

// `http_address`: where railheadd serves /readyz; "": it is not asked.
NodeSummary Summarize(const Root& root, const std::string& http_address);

// With the verdict first, and all fine checks on one line.
std::string TextOf(const NodeSummary& summary);

// Its findings.
SummaryFinding CheckFabricFile(const Root& root);
// `answer`: of /readyz; `lldp`: railheadd's file, which tells whether it runs at all.
SummaryFinding CheckDaemon(const Result<http::HttpAnswer>& answer,
                           const Result<std::optional<lldp::LldpReport>>& lldp,
                           std::chrono::system_clock::time_point now);
SummaryFinding CheckJournal(const Result<JournalScan>& scan, std::chrono::system_clock::time_point now);
SummaryFinding CheckAddresses(const Result<std::optional<AddressReport>>& report);
// Addresses that are left on each rail, of the ranges that fabric.json gives the node.
SummaryFinding CheckRanges(const Fabric& fabric, const std::string& node, std::optional<int> index,
                           const AddressReport& report);
// Running pods that lack routes to subnets which the fabric has got since.
SummaryFinding CheckRoutes(const Fabric& fabric, const std::vector<JournalEntry>& entries);

}  // namespace railhead::railctl

template <>
struct railhead::Names<railhead::railctl::Severity> {
  using enum railctl::Severity;
  static constexpr std::array kAll = {std::pair{"fine", kFine}, std::pair{"unknown", kUnknown},
                                      std::pair{"degraded", kDegraded}, std::pair{"broken", kBroken}};
};

template <>
struct railhead::Names<railhead::railctl::NodeVerdict> {
  using enum railctl::NodeVerdict;
  static constexpr std::array kAll = {std::pair{"ok", kOk}, std::pair{"degraded", kDegraded},
                                      std::pair{"broken", kBroken}};
};
