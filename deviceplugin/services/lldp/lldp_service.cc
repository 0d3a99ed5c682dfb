#include "deviceplugin/services/lldp/lldp_service.h"

#include <net/if.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/lldp/node_labels.h"
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

Result<std::unique_ptr<LldpWatch>> StartLldpWatch(const Root& root, Kernel& kernel, NodeFeatures* features,
                                                  Log* log) {
  LldpWatch::Calls calls;
  calls.changed = [features, log](const LldpReport& before, const LldpReport& now) {
    LogLldpChanges(log, before, now);
    features->SetReport(now);
  };
  calls.failed = [log](const std::string& what, const Error& error) {
    log->Warning("LLDP monitoring failed; switch port information may be stale", error, {{"what", what}});
  };
  return LldpWatch::Start(root, kernel, std::move(calls));
}

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

void AppendLldpMetrics(Exposition* page, const LldpReport& report) {
  page->Begin(
      MetricType::kGauge, "railhead_rail_switch_info",
      "Always 1; switch and port that a rail is connected to, from LLDP; without carrier, the last known");
  for (const RailNeighbor& rail : report.rails) {
    if (!rail.neighbor) continue;
    page->Sample({{"rail", rail.rail}, {"pf", rail.pf}, {"switch", SwitchOf(&rail)}, {"port", PortOf(&rail)}},
                 std::uint64_t{1});
  }
  page->Begin(MetricType::kGauge, "railhead_rail_miscabled",
              "1 while a rail is connected to a switch that is not among its expectedSwitches, else 0");
  for (const RailNeighbor& rail : report.rails) {
    if (!rail.expected.empty())
      page->Sample({{"rail", rail.rail}}, std::uint64_t{rail.cabling == Cabling::kWrong ? 1U : 0U});
  }
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

Result<std::unique_ptr<LldpWatch>> LldpWatch::Start(const Root& root, Kernel& kernel, Calls calls) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return FailSys(errno, "making an eventfd descriptor");
  return std::unique_ptr<LldpWatch>(new LldpWatch(root, kernel, std::move(calls), std::move(wake)));
}

LldpWatch::LldpWatch(Root root, Kernel& kernel, Calls calls, UniqueFd wake)
    : root_(std::move(root)),
      kernel_(kernel),
      calls_(std::move(calls)),
      wake_(std::move(wake)),
      thread_([this] { Loop(); }) {}

LldpWatch::~LldpWatch() {
  Stop();
  thread_.join();
}

void LldpWatch::Wake() const {
  const std::uint64_t one = 1;
  // A full counter means that a wake-up is pending already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void LldpWatch::Update(std::shared_ptr<const inventory::Inventory> inventory, std::string fabric_path) {
  {
    const std::lock_guard lock(mutex_);
    update_ = Node{std::move(inventory), std::move(fabric_path)};
  }
  Wake();
}

LldpReport LldpWatch::Report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

void LldpWatch::Stop() {
  stopped_ = true;
  Wake();
}

bool LldpWatch::AwaitEnd(milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

void LldpWatch::Complain(const std::string& what, const Error& error) {
  if (std::exchange(complaints_[what], error.message) != error.message) calls_.failed(what, error);
}

void LldpWatch::Restore() {
  const auto before = kLldpFile.Read(root_);
  if (!before) return Complain("reading the LLDP report of the last start", before.error());
  if (!*before) return;
  for (const RailNeighbor& rail : (*before)->rails) {
    if (rail.neighbor && !rail.device.empty())
      table_.Restore(rail.device, *rail.neighbor, NeighborTable::Time::Now());
  }
}

void LldpWatch::Loop() {
  Restore();
  while (!stopped_) {
    TakeUpdate();
    CheckPorts();
    if (published_) Publish();
    if (Wait(kPassInterval, true)) {
      ReceiveFrames();
      (void)Wait(kPause, false);
    }
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

Result<std::vector<LldpWatch::Port>> LldpWatch::PortsOf(const Node& node) const {
  std::vector<Port> ports;
  if (node.fabric_path.empty()) return ports;
  const auto fabric = RH_TRY(ReadFabric(root_, node.fabric_path));
  if (!fabric) return ports;
  const auto pfs = resources::PfsOfRails(*fabric, *node.inventory);
  for (const Rail& rail : fabric->rails) {
    Port port;
    port.rail.rail = rail.name;
    port.rail.expected = rail.expected_switches;
    if (const auto pf = pfs.find(rail.name); pf != pfs.end()) {
      port.rail.device = pf->second;
      port.rail.pf = node.inventory->Find(pf->second)->pf_name;
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

// Before the first update nothing is known, and the saved report must not be lost.
void LldpWatch::TakeUpdate() {
  std::optional<Node> node;
  {
    const std::lock_guard lock(mutex_);
    node = std::exchange(update_, std::nullopt);
  }
  if (!node) return;
  auto ports = PortsOf(*node);
  // An invalid fabric changes nothing here. Another part of railheadd reports it.
  if (!ports) return;
  std::set<std::string> devices;
  for (Port& port : *ports) {
    devices.insert(port.rail.device);
    const auto same =
        std::ranges::find_if(ports_, [&](const Port& old) { return old.rail.device == port.rail.device; });
    if (same == ports_.end()) continue;
    port.listener = std::exchange(same->listener, std::nullopt);
    port.changes = same->changes;
  }
  ports_ = *std::move(ports);
  table_.KeepOnly(devices);
  published_ = true;
}

// Whether the port's neighbor would be heard.
bool LldpWatch::Listen(Port& port) {
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

void LldpWatch::CheckPorts() {
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

void LldpWatch::Publish() {
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
  LldpReport before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(report_, report);
  }
  const bool changed = !SaysTheSame(before, report);
  Save(report, changed);
  if (changed) calls_.changed(before, report);
}

void LldpWatch::Save(const LldpReport& report, bool changed) {
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

// true: frames may be waiting. A wake-up ends the wait. Only Stop() ends the pause.
bool LldpWatch::Wait(milliseconds limit, bool for_frames) {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  for (const Port& port : ports_) {
    if (port.listener && for_frames) fds.push_back({port.listener->fd(), POLLIN, 0});
  }
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!stopped_) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left)) <= 0) break;
    std::uint64_t count = 0;
    const bool woken = fds[0].revents != 0 && ::read(wake_.get(), &count, sizeof count) > 0;
    const bool frames =
        std::any_of(fds.begin() + 1, fds.end(), [](const pollfd& fd) { return fd.revents != 0; });
    if (frames || (woken && for_frames)) return frames;
  }
  return false;
}

void LldpWatch::ReceiveFrames() {
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
