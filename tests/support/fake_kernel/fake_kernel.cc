#include "tests/support/fake_kernel/fake_kernel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "netns/base/text.h"

namespace railhead::testing {
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "FakeKernel: %s\n", what.c_str());
  std::abort();
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// A driver reports every setting of a new VF.
VfSettings FirstState(const FakeDriver& driver) {
  VfSettings state;
  ForEachVfSetting([&](const char*, auto setting) { (state.*setting).emplace(); });
  state.spoofchk = true;
  if (!driver.link_state) state.link_state.reset();
  return state;
}

}  // namespace

FakeKernel::FakeKernel(FakeSysfs& sysfs) : sysfs_(sysfs), mirror_(sysfs) {
  host_path_ = sysfs.directory() + "/host.netns";
  NewNamespace(kHost, host_path_);
}

void FakeKernel::NewNamespace(const std::string& name, const std::string& path) {
  FakeNamespace ns;
  ns.name = name;
  ns.fd.Reset(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct stat status {};
  if (!ns.fd.valid() || ::fstat(ns.fd.get(), &status) != 0) Die("cannot make " + path);
  ns.inode = status.st_ino;
  ns.rules = {{AF_INET, 0, {}, "", kTableLocal},
              {AF_INET, 32766, {}, "", kTableMain},
              {AF_INET, 32767, {}, "", 253},
              {AF_INET6, 0, {}, "", kTableLocal},
              {AF_INET6, 32766, {}, "", kTableMain}};
  ns.has_processes = name == kHost;
  // net.core.devconf_inherit_init_net is 0: IPv4 settings are inherited from the first namespace.
  if (const FakeNamespace* host = state_.Namespace(kHost); host != nullptr) {
    for (const auto& [sysctl, value] : host->sysctls) {
      if (sysctl.rfind("net/ipv4/conf/", 0) == 0) ns.sysctls[sysctl] = value;
    }
  }
  state_.namespaces.push_back(std::move(ns));
  FakeNetdev& lo = state_.AddNetdev(name, "lo");
  lo.link.index = 1;
  lo.link.mac = {};
  lo.link.mtu = 65536;
  state_.Namespace(name)->next_index = 2;
}

std::string FakeKernel::AddNamespace(const std::string& name) {
  std::string path = sysfs_.directory() + "/" + name + ".netns";
  NewNamespace(path, path);
  return path;
}

void FakeKernel::SetRelease(FakeRelease release) {
  state_.release = release;
  for (FakeNetdev& netdev : state_.netdevs) state_.ForgetNewer(netdev);
  Sync();
}

void FakeKernel::RemoveNamespace(const std::string& path) {
  FakeNamespace* ns = state_.Namespace(path);
  if (ns == nullptr) Die("no namespace " + path);
  gone_.push_back(std::move(ns->fd));
  (void)::unlink(path.c_str());
  state_.RemoveNamespace(path);
  Sync();
}

std::vector<std::string> FakeKernel::AddPf(const FakeNicSpec& pf, const FakeVfSpec& vfs) {
  sysfs_.AddPf({.address = pf.address, .netdev = "", .numa_node = pf.numa_node, .driver = pf.driver.name});
  FakeFunction function;
  function.bdf = pf.address;
  function.driver = pf.driver;
  function.netdev_name = pf.netdev;
  function.rdma_name = pf.rdma;
  function.roce = pf.roce;
  const auto number = static_cast<std::uint8_t>(state_.functions.size() + 1);
  function.burnt_in.bytes = {0x02, 0, 0, number, 0, 0xff};
  state_.functions.push_back(function);
  state_.Bind(state_.functions.back());
  FakeNetdev& netdev = *state_.OfFunction(pf.address);
  netdev.link.mtu = pf.mtu;
  if (pf.up) (void)state_.Change(netdev, {.up = true});
  std::vector<std::string> addresses;
  if (vfs.count > 0)
    addresses =
        sysfs_.AddVfs(pf.address, vfs.count, {.netdev = "", .driver = pf.driver.name, .offset = vfs.offset});
  for (int n = 0; n < vfs.count; ++n) {
    const auto named = [&](const std::string& pattern) {
      return Replaced(Replaced(pattern, "{pf}", pf.netdev), "{n}", std::to_string(n));
    };
    FakeFunction vf = function;
    vf.bdf = addresses[static_cast<std::size_t>(n)];
    vf.pf = pf.address;
    vf.vf = n;
    vf.netdev_name = named(vfs.netdev);
    vf.rdma_name = named(vfs.rdma);
    vf.state = FirstState(pf.driver);
    state_.functions.push_back(std::move(vf));
    state_.Bind(state_.functions.back());
    FakeNetdev& vf_netdev = *state_.OfFunction(addresses[static_cast<std::size_t>(n)]);
    vf_netdev.link.mtu = vfs.mtu;
    if (vfs.up) (void)state_.Change(vf_netdev, {.up = true});
  }
  Sync();
  return addresses;
}

void FakeKernel::AddVeth(const std::string& ns, const std::string& name, const std::string& peer_ns,
                         const std::string& peer) {
  const int first = state_.AddNetdev(ns, name).id;
  const int second = state_.AddNetdev(peer_ns, peer).id;
  for (const auto& [id, other] : {std::pair(first, second), std::pair(second, first)}) {
    state_.Netdev(id)->link.kind = "veth";
    state_.Netdev(id)->peer = other;
    (void)state_.Change(*state_.Netdev(id), {.up = true});
  }
  Sync();
}

void FakeKernel::AddVlan(const std::string& ns, const std::string& name, const std::string& lower) {
  const FakeNetdev* below = state_.Find(ns, lower);
  if (below == nullptr) Die("VLAN " + name);
  const int id = below->id;
  FakeNetdev& vlan = state_.AddNetdev(ns, name);
  vlan.link.kind = "vlan";
  vlan.lower = id;
  Sync();
}

void FakeKernel::AddAddress(const std::string& ns, const std::string& link, const std::string& prefix) {
  FakeNetdev* netdev = state_.Find(ns, link);
  if (netdev == nullptr || state_.AddAddress(*netdev, *IpPrefix::Parse(prefix)) != 0)
    Die("address " + prefix);
}

void FakeKernel::AddDefaultRoute(const std::string& ns, const std::string& link, const std::string& gateway) {
  Route route;
  route.destination = *IpPrefix::Parse("0.0.0.0/0");
  route.gateway = IpAddress::Parse(gateway);
  const FakeNetdev* netdev = state_.Find(ns, link);
  if (netdev != nullptr) route.link = netdev->link.index;
  if (netdev == nullptr || state_.AddRoute(ns, route) != 0) Die("default route by " + gateway);
}

void FakeKernel::SetUp(const std::string& ns, const std::string& link, bool up) {
  FakeNetdev* netdev = state_.Find(ns, link);
  if (netdev == nullptr) Die("no link " + link);
  (void)state_.Change(*netdev, {.up = up});
  Sync();
}

void FakeKernel::SetHasProcesses(const std::string& ns, bool has) {
  FakeNamespace* found = state_.Namespace(ns);
  if (found == nullptr) Die("no namespace " + ns);
  found->has_processes = has;
}

void FakeKernel::FailCall(int nth, int error, Fault fault) {
  fail_at_ = calls_ + nth;
  injected_ = {error, fault};
  log_.clear();
}

void FakeKernel::FailEvery(const std::string& call, int error, const std::string& text) {
  every_[call] = {error, text};
  log_.clear();
}

void FakeKernel::StopFailing() {
  fail_at_ = 0;
  every_.clear();
}

void FakeKernel::ParkAt(int nth) {
  park_at_ = calls_ + nth;
  parking_ = std::make_shared<Parking>();
}

bool FakeKernel::AwaitParked(const std::function<bool()>& done) {
  std::unique_lock lock(parking_->mutex);
  while (!parking_->parked && !done()) parking_->changed.wait_for(lock, std::chrono::milliseconds(1));
  park_at_ = 0;
  return parking_->parked;
}

std::string FakeKernel::Log() const {
  return Join(log_, "\n");
}

FakeKernel::Injected FakeKernel::Begin(const std::string& call, const std::string& what) {
  ++calls_;
  log_.push_back(std::to_string(calls_) + " " + call + " " + what);
  if (before) before(call + " " + what);
  if (calls_ == park_at_) {
    const std::shared_ptr<Parking> parking = parking_;
    std::unique_lock lock(parking->mutex);
    parking->parked = true;
    parking->changed.notify_all();
    for (;;) parking->changed.wait(lock);
  }
  Injected injected;
  if (calls_ == fail_at_) injected = injected_;
  if (const auto every = every_.find(call);
      every != every_.end() && what.find(every->second.text) != std::string::npos) {
    injected = {every->second.error, Fault::kRefused};
  }
  if (injected) log_.back() += " -> " + std::to_string(injected.error) + " (injected)";
  return injected;
}

Result<void> FakeKernel::Finish(int error, const std::string& what) {
  Sync();
  if (error == 0) return {};
  log_.back() += " -> " + std::to_string(error);
  return FailSys(error, what);
}

std::optional<std::string> FakeKernel::NameOf(const NetNs& ns) {
  for (const auto& known : state_.namespaces) {
    if (known.inode == ns.inode()) return known.name;
  }
  return std::nullopt;
}

Result<NetNs> FakeKernel::OpenNetns(const std::string& path) {
  const std::string what = "opening network namespace " + path;
  if (const auto injected = Begin("OpenNetns", path)) return FailSys(injected.error, what);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FailSys(errno, what);
  NetNs ns = RH_TRY(NetNs::FromFd(std::move(fd), path));
  if (!NameOf(ns)) return Fail(ErrorCode::kNotFound, what + ": it is no network namespace");
  return ns;
}

Result<NetNs> FakeKernel::HostNetns() {
  if (const auto injected = Begin("HostNetns", "")) return FailSys(injected.error, "opening the host's");
  UniqueFd fd(::open(host_path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FailSys(errno, "opening " + host_path_);
  return NetNs::FromFd(std::move(fd), "/proc/self/ns/net");
}

Result<std::unique_ptr<RouteApi>> FakeKernel::OpenRoute(const NetNs& ns) {
  const std::string what = "opening rtnetlink in " + ns.path();
  if (const auto injected = Begin("OpenRoute", ns.path())) return FailSys(injected.error, what);
  const auto name = NameOf(ns);
  if (!name) return FailSys(EINVAL, what);
  return MakeFakeRoute(*this, *name);
}

Result<std::unique_ptr<RdmaApi>> FakeKernel::OpenRdma(const NetNs& ns) {
  const std::string what = "opening RDMA netlink in " + ns.path();
  if (const auto injected = Begin("OpenRdma", ns.path())) return FailSys(injected.error, what);
  const auto name = NameOf(ns);
  if (!name) return FailSys(EINVAL, what);
  return MakeFakeRdma(*this, *name);
}

Result<std::unique_ptr<DeviceApi>> FakeKernel::OpenDevices(const NetNs& ns) {
  const std::string what = "opening the devices of " + ns.path();
  if (const auto injected = Begin("OpenDevices", ns.path())) return FailSys(injected.error, what);
  const auto name = NameOf(ns);
  if (!name) return FailSys(EINVAL, what);
  return MakeFakeDevices(*this, *name);
}

Result<std::optional<std::vector<GidEntry>>> FakeKernel::ReadGids(const NetNs& ns,
                                                                  const std::string& device) {
  const std::string what = "reading the GID table of " + device;
  if (const auto injected = Begin("ReadGids", device)) return FailSys(injected.error, what);
  FakeRdma* rdma = state_.Rdma(device);
  const auto name = NameOf(ns);
  if (!name) return FailSys(EINVAL, what);
  if (rdma == nullptr || !state_.RdmaVisible(*rdma, *name)) return std::nullopt;
  rdma->gids.CountRead();
  std::vector<GidEntry> table;
  const auto& slots = rdma->gids.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i] || slots[i]->hidden_reads > 0) continue;
    const FakeNetdev* netdev = state_.Netdev(slots[i]->netdev);
    table.push_back({static_cast<int>(i), slots[i]->gid, slots[i]->type, netdev ? netdev->link.name : ""});
  }
  return table;
}

Result<void> FakeKernel::Announce(const NetNs& ns, const Link& link,
                                  const std::vector<IpAddress>& addresses) {
  const std::string what = "announcing on " + link.name;
  if (const auto injected = Begin("Announce", link.name)) return FailSys(injected.error, what);
  const auto name = NameOf(ns);
  const FakeNetdev* netdev = name ? state_.Find(*name, link.index) : nullptr;
  if (netdev == nullptr) return FailSys(ENODEV, what);
  if (!netdev->link.up) return FailSys(ENETDOWN, what);
  // Without carrier the kernel drops it without an error.
  if (state_.HasCarrier(*netdev)) announcements_.push_back({*name, netdev->link.name, addresses});
  return {};
}

Result<bool> FakeKernel::HasProcesses(const NetNs& ns) {
  const std::string what = "looking for processes in network namespace " + ns.path();
  if (const auto injected = Begin("HasProcesses", ns.path())) return FailSys(injected.error, what);
  const auto name = NameOf(ns);
  return name && state_.Namespace(*name)->has_processes;
}

Result<void> FakeKernel::RebindDriver(const std::string& bdf) {
  const std::string what = "rebinding " + bdf;
  if (const auto injected = Begin("RebindDriver", bdf)) return FailSys(injected.error, what);
  FakeFunction* function = state_.Function(bdf);
  if (function == nullptr) return Finish(ENODEV, what);
  state_.Unbind(*function);
  (void)Finish(0, what);
  // The second write to sysfs: a process can die, or be refused, between the two.
  if (const auto injected = Begin("RebindDriver: bind", bdf)) return FailSys(injected.error, what);
  state_.Bind(*function);
  return Finish(0, what);
}

Result<void> FakeKernel::BindDriver(const std::string& bdf, const std::string& driver) {
  const std::string what = "binding " + bdf + " to " + driver;
  if (const auto injected = Begin("BindDriver", bdf)) return FailSys(injected.error, what);
  FakeFunction* function = state_.Function(bdf);
  if (function == nullptr || function->driver.name != driver) return Finish(ENODEV, what);
  state_.Bind(*function);
  return Finish(0, what);
}

Result<void> FakeKernel::ResetFunction(const std::string& bdf) {
  const std::string what = "resetting " + bdf;
  if (const auto injected = Begin("ResetFunction", bdf)) return FailSys(injected.error, what);
  FakeFunction* function = state_.Function(bdf);
  if (function == nullptr) return Finish(ENODEV, what);
  ++function->resets;
  return Finish(0, what);
}

}  // namespace railhead::testing
