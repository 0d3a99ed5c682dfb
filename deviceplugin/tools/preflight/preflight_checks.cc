#include "deviceplugin/tools/preflight/preflight_checks.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "deviceplugin/tools/preflight/report.h"
#include "netns/base/text.h"

namespace railhead::preflight {
namespace {

Finding Begin(const char* check) {
  Finding finding;
  finding.check = check;
  finding.fitness = Fitness::kFit;
  return finding;
}

// The worst so far counts, and its first fix.
void Add(Finding* finding, Fitness fitness, std::string detail, const std::string& fix = {}) {
  finding->details.push_back(std::move(detail));
  if (fitness > finding->fitness) {
    finding->fitness = fitness;
    finding->fix = fix;
  }
}

Finding NotChecked(const char* check, const Error& error) {
  Finding finding = Begin(check);
  Add(&finding, Fitness::kUnknown, error.message, error.hint);
  return finding;
}

std::string Speed(double gbit) {
  std::array<char, 32> text{};
  const bool slow = gbit < 1;
  (void)std::snprintf(text.data(), text.size(), slow ? "%.1f Mbit/s" : "%.1f Gbit/s",
                      slow ? gbit * 1e3 : gbit);
  return text.data();
}

// The peer was not reached at all.
bool IsAbsent(const Error& error) {
  constexpr std::array kErrors = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT};
  return Contains(kErrors, error.sys_errno);
}

// All reasons except that an operator has drained it.
std::vector<health::HealthReason> ReasonsOf(const health::DeviceHealth& device) {
  std::vector<health::HealthReason> reasons = device.reasons;
  std::erase_if(reasons, [](const health::HealthReason& reason) {
    return reason.rule == health::HealthRule::kDrained;
  });
  return reasons;
}

void AddRail(Finding* finding, const lldp::RailNeighbor& rail) {
  const std::string because = rail.because.empty() ? "" : ": " + rail.because;
  if (rail.cabling == lldp::Cabling::kWrong) {
    Add(finding, Fitness::kUnfit, rail.rail + " is connected to a wrong switch" + because,
        "check the cables, or `expectedSwitches` of the rail; see railctl lldp");
  } else if (rail.cabling == lldp::Cabling::kUnknown && !rail.expected.empty()) {
    Add(finding, Fitness::kUnknown, rail.rail + ": its switch is unknown" + because, "railctl lldp");
  }
}

void AddReachability(Finding* finding, const reachability::RailReachability& rail) {
  const std::string because = rail.because.empty() ? "" : ": " + rail.because;
  const std::size_t reachable = rail.Count(reachability::PeerState::kReachable);
  const std::size_t faulty = rail.peers.size() - rail.Count(reachability::PeerState::kUnknown) - reachable;
  const bool gateway = !rail.gateway || rail.gateway->answers;
  if (rail.state == reachability::ReachabilityState::kUnknown) {
    Add(finding, Fitness::kUnknown, rail.rail + ": its reachability is unknown" + because,
        "see railctl reachability");
  } else if (rail.state == reachability::ReachabilityState::kDead || !gateway || faulty > reachable) {
    Add(finding, Fitness::kUnfit, rail.rail + " is " + std::string(WordOf(rail.state)) + because,
        "see railctl reachability; check the switch port, its VLAN and MTU");
  } else if (faulty > 0) {
    Add(finding, Fitness::kFit, rail.rail + " does not reach all peers" + because, "");
  }
}

}  // namespace

Finding CheckDoctor(const doctor::Report& report) {
  Finding finding = Begin("doctor");
  for (const doctor::Finding& one : report.findings) {
    if (one.verdict.status() < doctor::Status::kWarning) continue;
    Add(&finding, Fitness::kUnfit, std::string(one.check->id) + ": " + one.verdict.Found(), "railctl doctor");
  }
  if (finding.details.empty())
    finding.details.push_back(std::to_string(report.findings.size()) + " checks without a warning");
  return finding;
}

Finding CheckHealth(const Result<std::optional<health::HealthState>>& state) {
  constexpr const char* kCheck = "health";
  if (!state) return NotChecked(kCheck, state.error());
  if (!*state) {
    return NotChecked(
        kCheck, {ErrorCode::kNotFound, "railheadd has not checked the NICs' health", "start railheadd", 0});
  }
  Finding finding = Begin(kCheck);
  std::size_t with_pf = 0;
  for (const health::DeviceHealth& device : (*state)->devices) {
    const std::vector<health::HealthReason> reasons = ReasonsOf(device);
    if (device.healthy || (reasons.empty() && !device.reasons.empty())) continue;
    // VFs that are unhealthy because of their PF are only counted.
    const bool shared = !reasons.empty() && std::ranges::none_of(reasons, [&](const auto& one) {
      return one.device == device.id;
    });
    if (shared) {
      ++with_pf;
      continue;
    }
    const std::string why = reasons.empty() ? "" : ": " + reasons.front().text;
    Add(&finding, Fitness::kUnfit, device.id + " is unhealthy" + why, "railctl health");
  }
  if (with_pf != 0)
    Add(&finding, Fitness::kUnfit, std::to_string(with_pf) + " devices are unhealthy with their PF",
        "railctl health");
  if (finding.details.empty())
    finding.details.push_back("no health rule is active for any of " +
                              std::to_string((*state)->devices.size()) + " devices");
  return finding;
}

Finding CheckDrains(const Result<std::vector<health::Drain>>& drains) {
  constexpr const char* kCheck = "drained";
  if (!drains) return NotChecked(kCheck, drains.error());
  Finding finding = Begin(kCheck);
  for (const health::Drain& drain : *drains) {
    const std::string why = drain.reason.empty() ? "" : ": " + drain.reason;
    Add(&finding, Fitness::kUnfit, drain.name + " is drained" + why, "railctl undrain " + drain.name);
  }
  if (drains->empty()) finding.details.emplace_back("nothing is drained");
  return finding;
}

Finding CheckRails(const Result<std::vector<RailPf>>& rails) {
  constexpr const char* kCheck = "rails";
  if (!rails) return NotChecked(kCheck, rails.error());
  Finding finding = Begin(kCheck);
  for (const RailPf& port : *rails) {
    if (port.pf.empty()) {
      Add(&finding, Fitness::kUnfit, port.rail + ": the node has no PF for it",
          "a card that is missing, or `pf` of the rail; railctl topology");
    } else if (!port.carrier) {
      Add(&finding, Fitness::kUnknown, port.rail + ": " + port.pf + " is not in this network namespace",
          "run it on the host, while no pod has the PF");
    } else if (!*port.carrier) {
      Add(&finding, Fitness::kUnfit, port.rail + ": " + port.pf + " has no carrier",
          "the cable, the switch's port, or: ip link set " + port.pf + " up");
    }
  }
  if (finding.details.empty())
    finding.details.push_back("all " + std::to_string(rails->size()) + " rails have carrier");
  return finding;
}

Finding CheckCabling(const Result<std::optional<lldp::LldpReport>>& report,
                     std::chrono::system_clock::time_point now) {
  constexpr const char* kCheck = "cabling";
  if (!report) return NotChecked(kCheck, report.error());
  if (!*report || lldp::kLldpFile.IsOld(**report, now)) {
    return NotChecked(
        kCheck, {ErrorCode::kNotFound, "no current report of the switches that the rails are connected to",
                 "start railheadd, with a fabric.json", 0});
  }
  Finding finding = Begin(kCheck);
  for (const lldp::RailNeighbor& rail : (*report)->rails) AddRail(&finding, rail);
  if (!finding.details.empty()) return finding;
  const auto checked =
      std::ranges::count((*report)->rails, lldp::Cabling::kRight, &lldp::RailNeighbor::cabling);
  finding.details.push_back(checked == 0
                                ? "no rail has expectedSwitches"
                                : std::to_string(checked) + " rails are connected to the expected switches");
  return finding;
}

Finding CheckReachability(const Result<std::optional<reachability::ReachabilityReport>>& report,
                          std::chrono::system_clock::time_point now) {
  constexpr const char* kCheck = "reachability";
  if (!report) return NotChecked(kCheck, report.error());
  Finding finding = Begin(kCheck);
  if (!*report) {
    finding.details.emplace_back("the rails are not probed: fabric.json has no `reachability`");
    return finding;
  }
  if (reachability::kReachabilityFile.IsOld(**report, now))
    return NotChecked(
        kCheck, {ErrorCode::kNotFound, "no current report of what the rails reach", "start railheadd", 0});
  for (const reachability::RailReachability& rail : (*report)->rails) AddReachability(&finding, rail);
  if (finding.details.empty())
    finding.details.push_back(std::to_string((*report)->rails.size()) +
                              " rails reach their gateways and peers");
  return finding;
}

Finding CheckRdma(const Result<std::vector<rdma_test::TestRecord>>& records, double min_gbit) {
  constexpr const char* kCheck = "rdma-test";
  if (!records) return NotChecked(kCheck, records.error());
  Finding finding = Begin(kCheck);
  for (const rdma_test::TestRecord& record : *records) {
    const std::string what = record.rail.empty() ? record.to : record.to + " " + record.rail;
    if (record.outcome) {
      const double gbit = record.outcome->write.GigabitsPerSecond();
      const bool slow = gbit < min_gbit;
      Add(&finding, slow ? Fitness::kUnfit : Fitness::kFit,
          what + ": " + Speed(gbit) + (slow ? ", less than " + Speed(min_gbit) : ""),
          slow ? "test against another peer: slow again, it is this node's port, PCIe link or cable" : "");
      continue;
    }
    // A peer that does not listen is not a fault of this node.
    Add(&finding, IsAbsent(record.outcome.error()) ? Fitness::kUnknown : Fitness::kUnfit,
        what + ": " + record.outcome.error().message, record.outcome.error().hint);
  }
  return finding;
}

}  // namespace railhead::preflight
