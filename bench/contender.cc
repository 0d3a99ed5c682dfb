#include "bench/contender.h"

#include <nlohmann/json.hpp>

#include "bench/chain.h"

namespace railhead::bench {
namespace {

using Json = nlohmann::json;

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

class ChainContender final : public Contender {
 public:
  ChainContender(std::string name, std::optional<Device> device, std::string netns, Chain chain)
      : name_(std::move(name)),
        device_(std::move(device)),
        netns_(std::move(netns)),
        chain_(std::move(chain)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] const Device* device() const override { return device_ ? &*device_ : nullptr; }
  [[nodiscard]] std::string netns() const override { return netns_; }
  Result<std::vector<Part>> Add(const std::string& id) override {
    return Parts(RH_TRY(chain_.Add({id, netns_, kIfname})));
  }
  Result<std::vector<Part>> Del(const std::string& id) override {
    return Parts(RH_TRY(chain_.Del({id, netns_, kIfname})));
  }
  [[nodiscard]] std::string Address() const override { return device_ ? chain_.Address() : ""; }
  void SetPrefix(std::vector<std::string> prefix) override { chain_.SetPrefix(std::move(prefix)); }

 private:
  std::vector<Part> Parts(const ChainCost& costs) {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      parts.push_back({BaseName(chain_.plugins()[i].path), costs[i]});
    }
    return parts;
  }

  std::string name_;
  std::optional<Device> device_;
  std::string netns_;
  Chain chain_;
};

// A program without JSON: the baseline, and /bin/true for what a process costs.
class ProgramContender final : public Contender {
 public:
  ProgramContender(std::string name, std::optional<Device> device, std::string netns, std::string path,
                   std::vector<std::string> arguments)
      : name_(std::move(name)),
        device_(std::move(device)),
        netns_(std::move(netns)),
        path_(std::move(path)),
        arguments_(std::move(arguments)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] const Device* device() const override { return device_ ? &*device_ : nullptr; }
  [[nodiscard]] std::string netns() const override { return netns_; }
  Result<std::vector<Part>> Add(const std::string&) override { return Run("add"); }
  Result<std::vector<Part>> Del(const std::string&) override { return Run("del"); }
  [[nodiscard]] std::string Address() const override { return device_ ? kBareAddress : ""; }
  void SetPrefix(std::vector<std::string> prefix) override { prefix_ = std::move(prefix); }

 private:
  Result<std::vector<Part>> Run(const std::string& command) {
    ProcessCall call;
    std::vector<std::string> line = prefix_;
    line.push_back(path_);
    line.push_back(command);
    line.insert(line.end(), arguments_.begin(), arguments_.end());
    call.path = line.front();
    call.arguments.assign(line.begin() + 1, line.end());
    const ProcessResult result = RH_TRY(RunProcess(call));
    return std::vector<Part>{{BaseName(path_), result.cost}};
  }

  std::string name_;
  std::optional<Device> device_;
  std::string netns_;
  std::string path_;
  std::vector<std::string> arguments_;
  std::vector<std::string> prefix_;
};

class Maker {
 public:
  explicit Maker(const Setting& setting) : setting_(setting) {}

  std::unique_ptr<Contender> True() {
    return std::make_unique<ProgramContender>(kTrue, std::nullopt, "", "/bin/true",
                                              std::vector<std::string>{});
  }

  // A rail without device: allocation and release alone.
  std::unique_ptr<Contender> Ipam() {
    const Json config = {{"type", "railhead-ipam"}, {"ipam", {{"type", "railhead-ipam"}, {"rail", "rail0"}}}};
    return MakeChain(kIpam, std::nullopt, {{setting_.programs + "/railhead-ipam", config.dump()}});
  }

  std::unique_ptr<Contender> HostLocal() {
    const Json config = {{"type", "host-local"}, {"ipam", HostLocalIpam("alone")}};
    return MakeChain(kHostLocal, std::nullopt, {{setting_.peers + "/host-local", config.dump()}});
  }

  std::unique_ptr<Contender> Bare(const Device& device) {
    const std::string netns = NextNetns();
    std::vector<std::string> arguments = {"netns=" + netns,
                                          std::string("ifname=") + kIfname,
                                          "netdev=" + device.netdev,
                                          std::string("address=") + kBareAddress,
                                          std::string("gateway=") + kGateway,
                                          std::string("route=") + kRoute,
                                          "table=" + std::to_string(kTable),
                                          "mtu=" + std::to_string(kMtu)};
    if (setting_.vlan != 0) {
      arguments.insert(arguments.end(), {"pf=" + device.pf, "vf=" + std::to_string(device.vf),
                                         "vlan=" + std::to_string(setting_.vlan)});
    }
    if (setting_.soft_roce) arguments.emplace_back("rxe=rxe_bare");
    return std::make_unique<ProgramContender>(kBare, device, netns, setting_.programs + "/bare_attach",
                                              std::move(arguments));
  }

  std::unique_ptr<Contender> Railhead(const Device& device) {
    const Json config = {{"type", "railhead"}, {"deviceID", device.bdf}, {"waitSeconds", 120}};
    return MakeChain(kRailhead, device, {{setting_.programs + "/railhead", config.dump()}});
  }

  // The same result of the standard plugins: address and route by host-device with
  // host-local, MTU and ARP settings by tuning, a table by source address by sbr.
  std::unique_ptr<Contender> HostDevice(const Device& device) {
    const std::string conf = std::string("net.ipv4.conf.") + kIfname + ".";
    Json move = {{"type", "host-device"}, {"ipam", HostLocalIpam("chain")}};
    move[setting_.by_bdf ? "pciBusID" : "device"] = setting_.by_bdf ? device.bdf : device.netdev;
    const Json tuning = {
        {"type", "tuning"},
        {"dataDir", setting_.scratch + "/tuning"},
        {"mtu", kMtu},
        {"sysctl", {{conf + "arp_ignore", "1"}, {conf + "arp_announce", "2"}, {conf + "rp_filter", "2"}}}};
    const Json sbr = {{"type", "sbr"}};
    return MakeChain(kHostDevice, device,
                     {{setting_.peers + "/host-device", move.dump()},
                      {setting_.peers + "/tuning", tuning.dump()},
                      {setting_.peers + "/sbr", sbr.dump()}});
  }

 private:
  std::string NextNetns() { return "/run/netns/bench-" + std::to_string(next_++); }

  Json HostLocalIpam(const std::string& directory) {
    return {{"type", "host-local"},
            {"dataDir", setting_.scratch + "/host-local-" + directory},
            {"ranges", Json::array({Json::array({{{"subnet", kSubnet},
                                                  {"rangeStart", "10.100.0.100"},
                                                  {"rangeEnd", "10.100.0.199"},
                                                  {"gateway", kGateway}}})})},
            {"routes", Json::array({{{"dst", kRoute}}})}};
  }

  std::unique_ptr<Contender> MakeChain(const std::string& name, std::optional<Device> device,
                                       std::vector<ChainPlugin> plugins) {
    const std::string path =
        setting_.peers.empty() ? setting_.programs : setting_.programs + ":" + setting_.peers;
    return std::make_unique<ChainContender>(name, std::move(device), NextNetns(),
                                            Chain("bench", std::move(plugins), path, setting_.root));
  }

  const Setting& setting_;
  int next_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Contender>> MakeContenders(const Setting& setting) {
  Maker maker(setting);
  std::vector<std::unique_ptr<Contender>> contenders;
  contenders.push_back(maker.True());
  contenders.push_back(maker.Ipam());
  if (!setting.peers.empty()) contenders.push_back(maker.HostLocal());
  const auto with_device = [&](const char* name, auto make) {
    if (const auto found = setting.devices.find(name); found != setting.devices.end()) {
      contenders.push_back((maker.*make)(found->second));
    }
  };
  with_device("bare", &Maker::Bare);
  with_device("railhead", &Maker::Railhead);
  if (!setting.peers.empty()) with_device("host-device", &Maker::HostDevice);
  return contenders;
}

}  // namespace railhead::bench
