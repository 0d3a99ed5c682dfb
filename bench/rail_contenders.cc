#include "bench/rail_contenders.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "bench/chain.h"
#include "netns/linux_kernel.h"

namespace railhead::bench {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto kWait = std::chrono::seconds(120);  // emulated machines are slow
constexpr int kVlan = 100;                         // of the first rail; the next has the next hundred
constexpr int kFirstHost = 210;                    // addresses that no fabric of the benchmark hands out

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

class IpBatch final : public RailsContender {
 public:
  explicit IpBatch(const RailsSetting& setting) : setting_(setting) {}

  [[nodiscard]] std::string name() const override { return kIpBatch; }
  [[nodiscard]] std::string netns() const override { return "/run/netns/bench-0"; }

  Result<std::vector<Part>> Add(const std::string&) override {
    std::vector<Part> parts;
    parts.push_back({"host batch", RH_TRY(Run("/sbin/ip", {"-batch", "-"}, HostLines()))});
    parts.push_back({"pod batch", RH_TRY(Run("/sbin/ip", {"-n", "bench-0", "-batch", "-"}, PodLines()))});
    if (setting_.soft_roce) {
      parts.push_back({"rdma batch", RH_TRY(Run("/usr/bin/nsenter", RdmaArguments(), RdmaLines("add")))});
    }
    const auto since = Clock::now();
    RH_TRY(Wait());
    Cost waited;
    waited.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - since).count();
    parts.push_back({"carrier and GID", waited});
    return parts;
  }

  Result<std::vector<Part>> Del(const std::string&) override {
    std::vector<Part> parts;
    if (setting_.soft_roce) {
      parts.push_back({"rdma batch", RH_TRY(Run("/usr/bin/nsenter", RdmaArguments(), RdmaLines("delete")))});
    }
    std::vector<std::string> lines;
    std::vector<std::string> vlans;
    for (std::size_t i = 0; i < setting_.devices.size(); ++i) {
      const auto& rail = setting_.devices[i];
      const std::string table = " table " + std::to_string(kTable + static_cast<int>(i));
      lines.push_back("rule del from " + Address(i) + table);
      lines.push_back("rule del oif " + rail.pod_name + table);
      lines.push_back("link set dev " + rail.pod_name + " netns 1 name " + rail.device.netdev);
      vlans.push_back("link set dev " + rail.device.pf + " vf " + std::to_string(rail.device.vf) + " vlan 0");
    }
    parts.push_back({"pod batch", RH_TRY(Run("/sbin/ip", {"-n", "bench-0", "-batch", "-"}, Join(lines)))});
    parts.push_back({"host batch", RH_TRY(Run("/sbin/ip", {"-batch", "-"}, Join(vlans)))});
    return parts;
  }

 private:
  [[nodiscard]] std::string Address(std::size_t index) const {
    return "10." + std::to_string((setting_.devices[index].rail + 1) * 100) + ".0." +
           std::to_string(kFirstHost + static_cast<int>(index));
  }

  [[nodiscard]] std::string HostLines() const {
    std::vector<std::string> lines;
    for (const auto& rail : setting_.devices) {
      lines.push_back("link set dev " + rail.device.pf + " vf " + std::to_string(rail.device.vf) + " vlan " +
                      std::to_string(kVlan * (rail.rail + 1)));
    }
    for (const auto& rail : setting_.devices) {
      lines.push_back("link set dev " + rail.device.netdev + " netns bench-0 name " + rail.pod_name);
    }
    return Join(lines);
  }

  [[nodiscard]] std::string PodLines() const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < setting_.devices.size(); ++i) {
      const auto& rail = setting_.devices[i];
      const std::string dev = " dev " + rail.pod_name;
      const std::string number = std::to_string(kTable + static_cast<int>(i));
      const std::string source = " src " + Address(i);
      const std::string through = std::string("route add ") + kRailsRoute + " via " + rail.Gateway();
      lines.push_back("link set" + dev + " mtu " + std::to_string(kMtu) + " addrgenmode none");
      lines.push_back("address add " + Address(i) + "/24" + dev);
      lines.push_back("link set" + dev + " up");
      lines.push_back("route add " + rail.Subnet() + dev + " scope link" + source + " table " + number);
      lines.push_back(through + dev + source + " table " + number);
      lines.push_back(through + dev + source + " metric " + number);
      lines.push_back("rule add from " + Address(i) + " priority 1000 table " + number);
      lines.push_back("rule add oif " + rail.pod_name + " priority 1001 table " + number);
    }
    return Join(lines);
  }

  static std::vector<std::string> RdmaArguments() {
    return {"--net=/run/netns/bench-0", "rdma", "--batch", "-"};
  }
  [[nodiscard]] std::string RdmaLines(const std::string& verb) const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < setting_.devices.size(); ++i) {
      const std::string add = " type rxe netdev " + setting_.devices[i].pod_name;
      lines.push_back("link " + verb + " rxeb" + std::to_string(i) + (verb == "add" ? add : ""));
    }
    return Join(lines);
  }

  Result<Cost> Run(const std::string& path, const std::vector<std::string>& arguments,
                   const std::string& lines) {
    ProcessCall call;
    call.path = path;
    call.arguments = arguments;
    call.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    call.input = lines;
    return RH_TRY(RunProcess(call)).cost;
  }

  Result<void> Wait() {
    LinuxKernel kernel{Root()};
    const NetNs pod_ns = RH_TRY(kernel.OpenNetns(netns()));
    const auto pod = RH_TRY(kernel.OpenRoute(pod_ns));
    const auto deadline = Clock::now() + kWait;
    for (std::size_t i = 0; i < setting_.devices.size(); ++i) {
      const std::string& pod_name = setting_.devices[i].pod_name;
      const auto link = RH_TRY(pod->FindLink(pod_name));
      if (!link) return Fail(ErrorCode::kNotFound, pod_name + " is not in the pod");
      if (!RH_TRY(pod->WaitCarrier(link->index, deadline))) {
        return Fail(ErrorCode::kTimeout, pod_name + " has no carrier");
      }
      if (!setting_.soft_roce) continue;
      const GidWanted gid{GidOf(*IpAddress::Parse(Address(i))), GidType::kRoceV2, pod_name};
      if (!RH_TRY(kernel.WaitGid(pod_ns, "rxeb" + std::to_string(i), gid, deadline))) {
        return Fail(ErrorCode::kTimeout, pod_name + " has no GID of its address");
      }
    }
    return {};
  }

  const RailsSetting& setting_;
};

class Chains final : public RailsContender {
 public:
  Chains(std::string name, std::string netns) : name_(std::move(name)), netns_(std::move(netns)) {}

  void Append(std::string ifname, Chain chain) {
    ifnames_.push_back(std::move(ifname));
    chains_.push_back(std::move(chain));
  }

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string netns() const override { return netns_; }
  Result<std::vector<Part>> Add(const std::string& id) override {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      Gather(chains_[i], RH_TRY_WRAP(chains_[i].Add({id, netns_, ifnames_[i]}), ifnames_[i]), parts);
    }
    return parts;
  }
  Result<std::vector<Part>> Del(const std::string& id) override {
    std::vector<Part> parts;
    for (std::size_t i = chains_.size(); i-- > 0;) {
      Gather(chains_[i], RH_TRY_WRAP(chains_[i].Del({id, netns_, ifnames_[i]}), ifnames_[i]), parts);
    }
    return parts;
  }

 private:
  // One part for each plugin, over all devices.
  static void Gather(const Chain& chain, const ChainCost& costs, std::vector<Part>& parts) {
    parts.resize(costs.size());
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const std::string& path = chain.plugins()[i].path;
      parts[i].name = path.substr(path.rfind('/') + 1);
      parts[i].cost += costs[i];
    }
  }

  std::string name_;
  std::string netns_;
  std::vector<std::string> ifnames_;
  std::vector<Chain> chains_;
};

Chain RailheadChain(const RailsSetting& setting, int probe_ms) {
  Json config = {{"type", "railhead"}, {"waitSeconds", 120}, {"devices", Json::array()}};
  for (const auto& rail : setting.devices) config["devices"].push_back(rail.device.bdf);
  if (probe_ms >= 0) config["conflictProbeMs"] = probe_ms;
  return {"rails", {{setting.programs + "/railhead", config.dump()}}, setting.programs, ""};
}

std::vector<ChainPlugin> HostDevicePlugins(const RailsSetting& setting, const RailDevice& rail) {
  const std::string conf = "net.ipv4.conf." + rail.pod_name + ".";
  const std::string base = rail.Subnet().substr(0, rail.Subnet().rfind('.') + 1);
  const Json ranges = Json::array({Json::array({{{"subnet", rail.Subnet()},
                                                 {"rangeStart", base + "100"},
                                                 {"rangeEnd", base + "199"},
                                                 {"gateway", rail.Gateway()}}})});
  const Json ipam = {{"type", "host-local"},
                     {"dataDir", setting.scratch + "/host-local-" + std::to_string(rail.rail)},
                     {"ranges", ranges},
                     {"routes", Json::array({{{"dst", kRailsRoute}}})}};
  const Json move = {{"type", "host-device"}, {"pciBusID", rail.device.bdf}, {"ipam", ipam}};
  const Json tuning = {
      {"type", "tuning"},
      {"dataDir", setting.scratch + "/tuning"},
      {"mtu", kMtu},
      {"sysctl", {{conf + "arp_ignore", "1"}, {conf + "arp_announce", "2"}, {conf + "rp_filter", "2"}}}};
  const Json sbr = {{"type", "sbr"}};
  return {{setting.peers + "/host-device", move.dump()},
          {setting.peers + "/tuning", tuning.dump()},
          {setting.peers + "/sbr", sbr.dump()}};
}

}  // namespace

std::string RailDevice::Subnet() const {
  return "10." + std::to_string((rail + 1) * 100) + ".0.0/24";
}

std::string RailDevice::Gateway() const {
  return "10." + std::to_string((rail + 1) * 100) + ".0.254";
}

std::unique_ptr<RailsContender> MakeIpBatch(const RailsSetting& setting) {
  return std::make_unique<IpBatch>(setting);
}

std::unique_ptr<RailsContender> MakeRailheadBefore(const RailsSetting& setting) {
  RailsSetting before = setting;
  before.programs = setting.before;
  return MakeRailhead(before, 0);
}

std::unique_ptr<RailsContender> MakeRailhead(const RailsSetting& setting, int probe_ms) {
  auto contender = std::make_unique<Chains>(kRailhead, "/run/netns/bench-1");
  contender->Append(kIfname, RailheadChain(setting, probe_ms));
  return contender;
}

std::unique_ptr<RailsContender> MakeRailheadOf(const RailsSetting& setting,
                                               const std::string& pod_namespace) {
  auto contender = std::make_unique<Chains>(kRailhead, "/run/netns/bench-1");
  Chain chain = RailheadChain(setting, -1);
  chain.SetArgs("IgnoreUnknown=1;K8S_POD_NAMESPACE=" + pod_namespace + ";K8S_POD_NAME=train");
  contender->Append(kIfname, std::move(chain));
  return contender;
}

std::unique_ptr<RailsContender> MakeHostDeviceChains(const RailsSetting& setting) {
  auto contender = std::make_unique<Chains>(kHostDevice, "/run/netns/bench-2");
  for (const auto& rail : setting.devices) {
    contender->Append(rail.pod_name, Chain("rails", HostDevicePlugins(setting, rail), setting.peers, ""));
  }
  return contender;
}

}  // namespace railhead::bench
