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

std::string LeafOf(const RailLeaf* rail) {
  return rail != nullptr && rail->neighbour ? rail->neighbour->neighbour.Leaf() : "";
}

std::string PortOf(const RailLeaf* rail) {
  return rail != nullptr && rail->neighbour ? rail->neighbour->neighbour.Port() : "";
}

}  // namespace

Result<std::unique_ptr<LeafWatch>> StartLeafWatch(const Root& root, Kernel& kernel, NodeFeatures* features,
                                                  Log* log) {
  LeafWatch::Calls calls;
  calls.changed = [features, log](const LeafReport& before, const LeafReport& now) {
    LogLeaves(log, before, now);
    features->Heard(now);
  };
  calls.failed = [log](const std::string& what, const Error& error) {
    log->Warning("where a rail hangs may be unknown", error, {{"what", what}});
  };
  return LeafWatch::Start(root, kernel, std::move(calls));
}

void LogLeaves(Log* log, const LeafReport& before, const LeafReport& now) {
  for (const RailLeaf& rail : now.rails) {
    const RailLeaf* old = before.Find(rail.rail);
    const std::string leaf = LeafOf(&rail);
    const bool moved = leaf != LeafOf(old) || PortOf(&rail) != PortOf(old);
    if (moved && leaf.empty())
      log->Info("a rail's switch is not heard any more", {{"rail", rail.rail}, {"leaf", LeafOf(old)}});
    if (moved && !leaf.empty()) {
      log->Info("a rail hangs on a switch",
                {{"rail", rail.rail}, {"pf", rail.pf}, {"leaf", leaf}, {"port", PortOf(&rail)}});
    }
    const bool was_wrong = old != nullptr && old->cabling == Cabling::kWrong;
    if (rail.cabling == Cabling::kWrong && (!was_wrong || moved)) {
      log->Warning("a rail hangs on another switch than the fabric says",
                   {{"rail", rail.rail}, {"pf", rail.pf}, {"leaf", leaf}, {"because", rail.because}});
    }
    if (rail.cabling == Cabling::kRight && was_wrong)
      log->Info("a rail hangs where it belongs again", {{"rail", rail.rail}, {"leaf", leaf}});
  }
}

void AppendLeaves(Exposition* page, const LeafReport& report) {
  page->Begin(MetricType::kGauge, "railhead_rail_leaf",
              "Always 1; the switch and the port of it that a rail hangs on, as LLDP tells; without carrier "
              "the last");
  for (const RailLeaf& rail : report.rails) {
    if (!rail.neighbour) continue;
    page->Sample({{"rail", rail.rail}, {"pf", rail.pf}, {"leaf", LeafOf(&rail)}, {"port", PortOf(&rail)}},
                 std::uint64_t{1});
  }
  page->Begin(MetricType::kGauge, "railhead_rail_miscabled",
              "1 while a rail hangs on another switch than the fabric says; of rails whose switch it names");
  for (const RailLeaf& rail : report.rails) {
    if (!rail.expected.empty())
      page->Sample({{"rail", rail.rail}}, std::uint64_t{rail.cabling == Cabling::kWrong ? 1U : 0U});
  }
}

namespace {

using std::chrono::milliseconds;

// Between two looks at carriers and times to live.
constexpr milliseconds kLook{5'000};
// After frames: a flood is left to the sockets' buffers, which drop what is too much.
constexpr milliseconds kPause{200};
// That neighbours are still heard is written down so often; the age that railctl shows is that old at most.
constexpr std::chrono::seconds kSave{30};
constexpr int kFramesAtOnce = 16;

// Empty where sysfs does not say: the device is not here, or it is down.
std::string AttributeOf(const Root& root, const std::string& netdev, const char* name) {
  const auto text = ReadNetdevAttribute(root, netdev, name);
  return text ? text->value_or("") : "";
}

}  // namespace

Result<std::unique_ptr<LeafWatch>> LeafWatch::Start(const Root& root, Kernel& kernel, Calls calls) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return FailSys(errno, "making an eventfd descriptor");
  return std::unique_ptr<LeafWatch>(new LeafWatch(root, kernel, std::move(calls), std::move(wake)));
}

LeafWatch::LeafWatch(Root root, Kernel& kernel, Calls calls, UniqueFd wake)
    : root_(std::move(root)),
      kernel_(kernel),
      calls_(std::move(calls)),
      wake_(std::move(wake)),
      thread_([this] { Loop(); }) {}

LeafWatch::~LeafWatch() {
  Stop();
  thread_.join();
}

void LeafWatch::Wake() const {
  const std::uint64_t one = 1;
  // Full means that a wake-up is pending already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void LeafWatch::Update(std::shared_ptr<const inventory::Inventory> inventory, std::string fabric_path) {
  {
    const std::lock_guard lock(mutex_);
    update_ = Node{std::move(inventory), std::move(fabric_path)};
  }
  Wake();
}

LeafReport LeafWatch::Report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

void LeafWatch::Stop() {
  stopped_ = true;
  Wake();
}

bool LeafWatch::AwaitEnd(milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

void LeafWatch::Complain(const std::string& what, const Error& error) {
  if (std::exchange(complaints_[what], error.message) != error.message) calls_.failed(what, error);
}

void LeafWatch::Restore() {
  const auto before = kLeafFile.Read(root_);
  if (!before) return Complain("reading where the rails hung before", before.error());
  if (!*before) return;
  for (const RailLeaf& rail : (*before)->rails) {
    if (rail.neighbour && !rail.device.empty())
      table_.Restore(rail.device, *rail.neighbour, NeighbourTable::Time::Now());
  }
}

void LeafWatch::Loop() {
  Restore();
  while (!stopped_) {
    TakeUpdate();
    Look();
    if (published_) Publish();
    if (Wait(kLook, true)) {
      Hear();
      (void)Wait(kPause, false);
    }
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

Result<std::vector<LeafWatch::Port>> LeafWatch::PortsOf(const Node& node) const {
  std::vector<Port> ports;
  if (node.fabric_path.empty()) return ports;
  const auto fabric = RH_TRY(ReadFabric(root_, node.fabric_path));
  if (!fabric) return ports;
  const auto pfs = resources::PfsOfRails(*fabric, *node.inventory);
  for (const Rail& rail : fabric->rails) {
    Port port;
    port.leaf.rail = rail.name;
    port.leaf.expected = rail.leaves;
    if (const auto pf = pfs.find(rail.name); pf != pfs.end()) {
      port.leaf.device = pf->second;
      port.leaf.pf = node.inventory->Find(pf->second)->pf_name;
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

// Before the first one nothing is known, and what is written down must not be lost.
void LeafWatch::TakeUpdate() {
  std::optional<Node> node;
  {
    const std::lock_guard lock(mutex_);
    node = std::exchange(update_, std::nullopt);
  }
  if (!node) return;
  auto ports = PortsOf(*node);
  // A fabric that is wrong changes nothing, as elsewhere in railheadd, which tells of it.
  if (!ports) return;
  std::set<std::string> devices;
  for (Port& port : *ports) {
    devices.insert(port.leaf.device);
    const auto same =
        std::ranges::find_if(ports_, [&](const Port& old) { return old.leaf.device == port.leaf.device; });
    if (same == ports_.end()) continue;
    port.listener = std::exchange(same->listener, std::nullopt);
    port.changes = same->changes;
  }
  ports_ = *std::move(ports);
  table_.KeepOnly(devices);
  published_ = true;
}

// Whether the port's neighbour would be heard.
bool LeafWatch::Listen(Port& port) {
  const int link = port.leaf.pf.empty() ? 0 : static_cast<int>(::if_nametoindex(port.leaf.pf.c_str()));
  if (port.listener && port.listener->link() != link) port.listener.reset();
  if (link == 0) {
    port.leaf.because = port.leaf.device.empty() ? "this node has no PF for it" : "its PF is not on the host";
    return false;
  }
  if (port.listener) return true;
  const std::string what = "listening at " + port.leaf.pf + ", the PF of " + port.leaf.rail;
  const auto host = kernel_.HostNetns();
  auto listener = host ? LldpListener::Open(*host, link) : Fail(host.error());
  if (!listener) {
    port.leaf.because = "railheadd cannot listen: " + listener.error().message;
    Complain(what, listener.error());
    return false;
  }
  complaints_.erase(what);
  port.listener = *std::move(listener);
  return true;
}

void LeafWatch::Look() {
  const auto time = NeighbourTable::Time::Now();
  for (Port& port : ports_) {
    bool hears = Listen(port);
    port.leaf.carrier = AttributeOf(root_, port.leaf.pf, "carrier") == "1";
    std::string changes = AttributeOf(root_, port.leaf.pf, "carrier_changes");
    if (std::exchange(port.changes, changes) != changes || !port.leaf.carrier) hears = false;
    if (port.listener) port.leaf.because = port.leaf.carrier ? "" : "no carrier";
    table_.Tend(port.leaf.device, hears, time);
  }
}

void LeafWatch::Publish() {
  LeafReport report;
  report.node = NodeName(root_).value_or("");
  report.time = std::chrono::system_clock::now();
  for (const Port& port : ports_) {
    RailLeaf& rail = report.rails.emplace_back(port.leaf);
    const auto heard = table_.Of(rail.device);
    if (!heard.empty()) rail.neighbour = heard.front();
    for (std::size_t i = 1; i < heard.size(); ++i)
      rail.others.push_back(heard[i].neighbour.Leaf() + " " + heard[i].neighbour.Port());
  }
  JudgeCabling(report.rails);
  LeafReport before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(report_, report);
  }
  const bool changed = !SaysTheSame(before, report);
  Save(report, changed);
  if (changed) calls_.changed(before, report);
}

void LeafWatch::Save(const LeafReport& report, bool changed) {
  const auto now = std::chrono::steady_clock::now();
  if (!changed && now < saved_ + kSave) return;
  saved_ = now;
  constexpr const char* kWhat = "writing down where the rails hang";
  if (const auto written = kLeafFile.Write(root_, report); !written) {
    Complain(kWhat, written.error());
  } else {
    complaints_.erase(kWhat);
  }
}

// true: there may be frames. A wake-up ends it, but for the pause, which only Stop() ends.
bool LeafWatch::Wait(milliseconds limit, bool for_frames) {
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

void LeafWatch::Hear() {
  for (Port& port : ports_) {
    for (int i = 0; port.listener && i < kFramesAtOnce; ++i) {
      const auto neighbour = port.listener->Receive(std::chrono::steady_clock::time_point());
      if (!neighbour) {
        Complain("hearing the neighbour of " + port.leaf.rail, neighbour.error());
        port.listener.reset();
      } else if (*neighbour) {
        table_.Hear(port.leaf.device, **neighbour, NeighbourTable::Time::Now());
      } else {
        break;
      }
    }
  }
}

}  // namespace railhead::lldp
