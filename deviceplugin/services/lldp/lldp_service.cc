#include "deviceplugin/services/lldp/lldp_service.h"

#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/lldp/cabling.h"
#include "netns/base/node.h"
#include "netns/sys/netdev_sysfs.h"

namespace railhead::lldp {
namespace {

std::string SwitchOf(const RailNeighbor* rail) {
  return rail != nullptr && rail->neighbor ? rail->neighbor->neighbor.SwitchName() : "";
}

std::string PortOf(const RailNeighbor* rail) {
  return rail != nullptr && rail->neighbor ? rail->neighbor->neighbor.Port() : "";
}

}  // namespace

void LogLldpChanges(Log* log, const LldpReport& before, const LldpReport& now) {
  for (const RailNeighbor& rail : now.rails) {
    const RailNeighbor* old = before.Find(rail.rail);
    const std::string name = SwitchOf(&rail);
    const bool moved = name != SwitchOf(old) || PortOf(&rail) != PortOf(old);
    if (moved && name.empty())
      log->Info("LLDP frames of a rail's switch no longer arrive",
                {{"rail", rail.rail}, {"switch", SwitchOf(old)}});
    if (moved && !name.empty()) {
      log->Info("a rail is connected to a switch",
                {{"rail", rail.rail}, {"pf", rail.pf}, {"switch", name}, {"port", PortOf(&rail)}});
    }
    const bool was_wrong = old != nullptr && old->cabling == Cabling::kWrong;
    if (rail.cabling == Cabling::kWrong && (!was_wrong || moved)) {
      log->Warning("a rail is connected to a switch that is not among its expectedSwitches",
                   {{"rail", rail.rail}, {"pf", rail.pf}, {"switch", name}, {"because", rail.because}});
    }
    if (rail.cabling == Cabling::kRight && was_wrong)
      log->Info("a rail is connected to an expected switch again", {{"rail", rail.rail}, {"switch", name}});
  }
}

void LldpService::Register(MetricRegistry& metrics) {
  metrics.Add(
      MetricType::kGauge, "railhead_rail_switch_info",
      "Always 1; switch and port that a rail is connected to, from LLDP; without carrier, the last known",
      [this](Exposition& page) {
        const auto report = report_.Get();
        for (const RailNeighbor& rail : report->rails) {
          if (!rail.neighbor) continue;
          page.Sample(
              {{"rail", rail.rail}, {"pf", rail.pf}, {"switch", SwitchOf(&rail)}, {"port", PortOf(&rail)}},
              std::uint64_t{1});
        }
      });
  metrics.Add(
      MetricType::kGauge, "railhead_rail_miscabled",
      "1 while a rail is connected to a switch that is not among its expectedSwitches, else 0",
      [this](Exposition& page) {
        const auto report = report_.Get();
        for (const RailNeighbor& rail : report->rails) {
          if (!rail.expected.empty())
            page.Sample({{"rail", rail.rail}}, std::uint64_t{rail.cabling == Cabling::kWrong ? 1U : 0U});
        }
      });
}

namespace {

using std::chrono::milliseconds;

// Between two passes over carriers and times to live.
constexpr milliseconds kPassInterval{5'000};
// The pause after frames. In a flood the sockets' buffers drop the excess.
constexpr milliseconds kPause{200};
// How often the file is written while nothing changes. The ages that railctl shows are wrong by up to this.
constexpr std::chrono::seconds kSave{30};
constexpr int kFramesAtOnce = 16;

// Empty where sysfs has no value: the device is not here, or it is down.
std::string AttributeOf(const Root& root, const std::string& netdev, const char* name) {
  const auto text = ReadNetdevAttribute(root, netdev, name);
  return text ? text->value_or("") : "";
}

}  // namespace

LldpService::LldpService(Root root, Kernel& kernel, const Published<NodeSnapshot>& node,
                         NodeFeatures features, Log* log)
    : root_(std::move(root)), kernel_(kernel), node_(node), features_(std::move(features)), log_(log) {}

void LldpService::Complain(const std::string& what, const Error& error) {
  if (complaints_[what].IsNew(error))
    log_->Warning("LLDP monitoring failed; switch port information may be stale", error, {{"what", what}});
}

void LldpService::Restore() {
  const auto before = kLldpFile.Read(root_);
  if (!before) return Complain("reading the LLDP report of the last start", before.error());
  if (!*before) return;
  for (const RailNeighbor& rail : (*before)->rails) {
    if (rail.neighbor && !rail.device.empty())
      table_.Restore(rail.device, *rail.neighbor, NeighborTable::Time::Now());
  }
}

Result<void> LldpService::Run(Worker& worker) {
  node_.Subscribe(worker);
  Restore();
  while (!worker.StopRequested()) {
    TakeNode();
    CheckPorts();
    if (published_) Publish();
    if (AwaitFrames(worker)) {
      ReceiveFrames();
      worker.Pause(kPause);
    }
  }
  return {};
}

namespace {

std::vector<RailNeighbor> RailsOf(const NodeSnapshot& node) {
  std::vector<RailNeighbor> rails;
  if (node.rails() == nullptr) return rails;
  for (const Rail& rail : node.rails()->rails) {
    RailNeighbor& neighbor = rails.emplace_back();
    neighbor.rail = rail.name;
    neighbor.expected = rail.expected_switches;
    if (const auto pf = node.pf_of_rail.find(rail.name); pf != node.pf_of_rail.end()) {
      neighbor.device = pf->second;
      neighbor.pf = node.inventory->Find(pf->second)->pf_name;
    }
  }
  return rails;
}

}  // namespace

// Before the first reading nothing is known, and the saved report must not be lost.
void LldpService::TakeNode() {
  auto node = node_.Get();
  if (node == known_ || node->inventory == nullptr) return;
  known_ = std::move(node);
  std::vector<Port> ports;
  std::set<std::string> devices;
  for (RailNeighbor& rail : RailsOf(*known_)) {
    devices.insert(rail.device);
    Port& port = ports.emplace_back();
    port.rail = std::move(rail);
    const auto same =
        std::ranges::find_if(ports_, [&](const Port& old) { return old.rail.device == port.rail.device; });
    if (same == ports_.end()) continue;
    port.listener = std::exchange(same->listener, std::nullopt);
    port.changes = same->changes;
  }
  ports_ = std::move(ports);
  table_.KeepOnly(devices);
  published_ = true;
  features_.SetNode(known_);
}

// Whether the port's neighbor would be heard.
bool LldpService::Listen(Port& port) {
  const int link = port.rail.pf.empty() ? 0 : static_cast<int>(::if_nametoindex(port.rail.pf.c_str()));
  if (port.listener && port.listener->link() != link) port.listener.reset();
  if (link == 0) {
    port.rail.because = port.rail.device.empty() ? "this node has no PF for it" : "its PF is not on the host";
    return false;
  }
  if (port.listener) return true;
  const std::string what = "listening at " + port.rail.pf + ", the PF of " + port.rail.rail;
  const auto host = kernel_.HostNetns();
  auto listener = host ? LldpListener::Open(*host, link) : Fail(host.error());
  if (!listener) {
    port.rail.because = "railheadd cannot listen: " + listener.error().message;
    Complain(what, listener.error());
    return false;
  }
  complaints_.erase(what);
  port.listener = *std::move(listener);
  return true;
}

void LldpService::CheckPorts() {
  const auto time = NeighborTable::Time::Now();
  for (Port& port : ports_) {
    bool hears = Listen(port);
    port.rail.carrier = AttributeOf(root_, port.rail.pf, "carrier") == "1";
    std::string changes = AttributeOf(root_, port.rail.pf, "carrier_changes");
    if (std::exchange(port.changes, changes) != changes || !port.rail.carrier) hears = false;
    if (port.listener) port.rail.because = port.rail.carrier ? "" : "no carrier";
    table_.Refresh(port.rail.device, hears, time);
  }
}

void LldpService::Publish() {
  LldpReport report;
  report.node = NodeName(root_).value_or("");
  report.time = std::chrono::system_clock::now();
  for (const Port& port : ports_) {
    RailNeighbor& rail = report.rails.emplace_back(port.rail);
    const auto heard = table_.Of(rail.device);
    if (!heard.empty()) rail.neighbor = heard.front();
    for (std::size_t i = 1; i < heard.size(); ++i)
      rail.others.push_back(heard[i].neighbor.SwitchName() + " " + heard[i].neighbor.Port());
  }
  JudgeCabling(report.rails);
  const auto before = report_.Get();
  const bool changed = !SaysTheSame(*before, report);
  Save(report, changed);
  if (changed) {
    LogLldpChanges(log_, *before, report);
    features_.SetReport(report);
  }
  report_.Set(std::move(report));
}

void LldpService::Save(const LldpReport& report, bool changed) {
  const auto now = std::chrono::steady_clock::now();
  if (!changed && now < saved_ + kSave) return;
  saved_ = now;
  constexpr const char* kWhat = "writing the LLDP report";
  if (const auto written = kLldpFile.Write(root_, report); !written) {
    Complain(kWhat, written.error());
  } else {
    complaints_.erase(kWhat);
  }
}

bool LldpService::AwaitFrames(Worker& worker) {
  std::vector<pollfd> fds;
  for (const Port& port : ports_) {
    if (port.listener) fds.push_back({port.listener->fd(), POLLIN, 0});
  }
  worker.Wait(Worker::Clock::now() + kPassInterval, fds);
  return std::ranges::any_of(fds, [](const pollfd& fd) { return fd.revents != 0; });
}

void LldpService::ReceiveFrames() {
  for (Port& port : ports_) {
    for (int i = 0; port.listener && i < kFramesAtOnce; ++i) {
      const auto neighbor = port.listener->Receive(std::chrono::steady_clock::time_point());
      if (!neighbor) {
        Complain("receiving LLDP frames on " + port.rail.rail, neighbor.error());
        port.listener.reset();
      } else if (*neighbor) {
        table_.Add(port.rail.device, **neighbor, NeighborTable::Time::Now());
      } else {
        break;
      }
    }
  }
}

}  // namespace railhead::lldp
