#include "tests/support/plugin/plugin_fixture.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cni/protocol/cni_request.h"
#include "cni/protocol/read_request.h"
#include "cni/state/allocation.h"
#include "netns/base/text.h"

namespace railhead::testing {

void PluginFixture::MakeNics() {
  vfs_.push_back(kernel_.AddPf({.address = "0000:43:00.0", .netdev = "pf0", .rdma = "mlx5_0", .mtu = 9000},
                               {.count = 4, .rdma = "mlx5_{pf}v{n}"}));
  vfs_.push_back(kernel_.AddPf({.address = "0000:83:00.0", .netdev = "pf1", .rdma = "mlx5_1", .mtu = 9000},
                               {.count = 4, .rdma = "mlx5_{pf}v{n}"}));
}

void PluginFixture::SetUp() {
  // Addresses that the kernel adds by itself must not take GID slots.
  kernel_.state().default_addr_gen_mode = AddrGenMode::kStablePrivacy;
  MakeNics();
  WriteFileAt(sysfs_.directory() + "/proc/sys/kernel/random/boot_id", "11111111-2222\n");
  // Of the node, for the topology file that soft RoCE devices need.
  sysfs_.Write("/proc/cpuinfo",
               "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n");
  std::filesystem::create_directories(Programs());
  std::filesystem::create_symlink(TEST_IPAM, Programs() + "/test-ipam");
  WriteFabric();
  pod_ = MakePod("pod1");
}

std::string PluginFixture::MakePod(const std::string& name) {
  std::string ns = kernel_.AddNamespace(name);
  kernel_.AddVeth(ns, "eth0", kHost, "veth-" + name);
  kernel_.AddAddress(ns, "eth0", "10.244.0.5/24");
  kernel_.AddDefaultRoute(ns, "eth0", "10.244.0.1");
  return ns;
}

void PluginFixture::WriteFabric(const std::string& more) {
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", R"({"version":1,"rails":[
    {"name":"rail0","pf":"pf0","vlan":100,"vlanQoS":3,"subnet":"10.100.0.0/24","gateway":"10.100.0.254",
     "routes":["10.0.0.0/8"],"trafficClass":106)" + more + R"(},
    {"name":"rail1","pf":"pf1","vlan":200,"subnet":"10.200.0.0/24","gateway":"10.200.0.254",
     "routes":["10.0.0.0/8"],"trafficClass":106)" + more + R"(}],
    "policy":{"networks":[{"ipam":["test-ipam"])" + permissions_ + "}]}}");
}

void PluginFixture::Allocate(const std::vector<std::string>& devices, DeviceNodeMode device_nodes,
                             NcclConfigPolicy nccl_config) {
  for (const auto& device : devices) {
    ASSERT_TRUE(
        WriteAllocation(sysfs_.root(), {kDefaultResource, device, devices, 1, nccl_config, device_nodes}));
  }
}

std::string PluginFixture::Device(int n, int rail) const {
  return R"("deviceID":")" + vfs_.at(static_cast<std::size_t>(rail)).at(static_cast<std::size_t>(n)) + "\"";
}

std::string PluginFixture::Ipam(const std::string& address) const {
  return R"("ipam":{"type":"test-ipam","address":")" + address + "\"}";
}

std::string PluginFixture::Usual(int n, int rail) const {
  const std::string host = std::to_string(10 + n);
  return Device(n, rail) + "," + Ipam((rail == 0 ? "10.100.0." : "10.200.0.") + host + "/24");
}

CniRequest PluginFixture::Request(const Call& call) {
  const std::map<std::string, std::string> variables{{"CNI_COMMAND", call.command},
                                                     {"CNI_CONTAINERID", call.container},
                                                     {"CNI_NETNS", call.netns.empty() ? pod_ : call.netns},
                                                     {"CNI_IFNAME", call.ifname},
                                                     {"CNI_ARGS", call.args},
                                                     {"CNI_PATH", Programs()}};
  // Delegated plugins get this process's environment.
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  auto request = ReadEnvironment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
  if (!request) {
    ADD_FAILURE() << request.error().error.message;
    return {};
  }
  // Tests of waiting set the timeout themselves.
  const std::string patience = call.config.find("previousDelTimeoutSeconds") == std::string::npos
                                   ? R"(,"previousDelTimeoutSeconds":0)"
                                   : "";
  const std::string config = R"({"cniVersion":")" + call.cni_version + R"(","name":")" + call.network +
                             R"(","type":"railhead")" + patience +
                             (call.config.empty() ? "" : "," + call.config) + "}";
  const auto read = ReadConfiguration(config, *request);
  if (!read) ADD_FAILURE() << read.error().error.message;
  return *request;
}

Result<std::string> PluginFixture::Add(const Call& call) {
  return plugin_.Add(Request(call));
}

Result<void> PluginFixture::Del(Call call) {
  call.command = "DEL";
  return plugin_.Del(Request(call));
}

Result<void> PluginFixture::Check(Call call) {
  call.command = "CHECK";
  return plugin_.Check(Request(call));
}

Result<void> PluginFixture::Gc(const std::vector<ValidAttachment>& valid, Call call) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& one : valid) list.push_back({{"containerID", one.container_id}, {"ifname", one.ifname}});
  call.command = "GC";
  call.cni_version = "1.1.0";
  if (!call.config.empty()) call.config += ",";
  call.config += R"("cni.dev/valid-attachments":)" + list.dump();
  return plugin_.Gc(Request(call), valid);
}

Result<void> PluginFixture::Status(const std::string& config) {
  return plugin_.Status(Request({.command = "STATUS", .config = config, .cni_version = "1.1.0"}));
}

std::string PluginFixture::Files() const {
  std::string text;
  for (const char* directory : {"/run/railhead", "/run/cdi"}) {
    for (const auto& file : FilesBelow(sysfs_.directory() + directory)) {
      // Files that the plugin keeps on purpose.
      if (file.rfind("attach.log", 0) == 0 || file.rfind("tenants/", 0) == 0 || file == "rdma-mode") continue;
      // The plugin empties a mounted file and a device's lock file instead of removing them.
      const bool emptied = file.starts_with("nccl-device/") || file.starts_with("locks/");
      if (emptied && File(std::string(directory) + "/" + file).empty()) continue;
      text += std::string(directory) + "/" + file + "\n";
    }
  }
  return text;
}

std::string PluginFixture::ChangedSince(const std::string& before) {
  auto old_lines = Split(before, '\n');
  auto new_lines = Split(World(), '\n');
  std::sort(old_lines.begin(), old_lines.end());
  std::sort(new_lines.begin(), new_lines.end());
  std::vector<std::string> gone;
  std::vector<std::string> come;
  std::set_difference(old_lines.begin(), old_lines.end(), new_lines.begin(), new_lines.end(),
                      std::back_inserter(gone));
  std::set_difference(new_lines.begin(), new_lines.end(), old_lines.begin(), old_lines.end(),
                      std::back_inserter(come));
  std::string text;
  for (const auto& line : gone) text += "- " + line + "\n";
  for (const auto& line : come) text += "+ " + line + "\n";
  return text;
}

std::string PluginFixture::File(const std::string& path) const {
  return ReadFileAt(sysfs_.directory() + path);
}

std::string PluginFixture::HeldAddresses() const {
  return Join(FilesBelow(programs_.directory() + "/held"), " ");
}

std::string PluginFixture::World() {
  return kernel_.Snapshot() + "\n" + Files() + "addresses held: " + HeldAddresses();
}

std::string PluginFixture::IpamLog() {
  const std::string path = programs_.directory() + "/ipam.log";
  const std::string log = ReadFileAt(path);
  std::filesystem::remove(path);
  auto lines = Split(log, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return Join(lines, ", ");
}

std::string PluginFixture::IpamCalls() {
  std::vector<std::string> commands;
  const std::string log = IpamLog();
  if (log.empty()) return "";
  for (const auto& line : Split(log, ',')) {
    const auto words = Split(line, ' ');
    commands.push_back(words[words[0].empty() ? 1 : 0]);
  }
  return Join(commands, " ");
}

std::string PluginFixture::IpamInput(const std::string& command) const {
  return ReadFileAt(programs_.directory() + "/stdin-" + command);
}

void PluginFixture::FailIpam(const std::string& command) {
  for (const auto& file : FilesBelow(programs_.directory())) {
    if (file.starts_with("ipam.fail-")) std::filesystem::remove(programs_.directory() + "/" + file);
  }
  if (!command.empty()) WriteFileAt(programs_.directory() + "/ipam.fail-" + command, "");
}

Link PluginFixture::PodLink(const std::string& name, const std::string& ns) {
  FakeNetdev* netdev = kernel_.state().Find(ns.empty() ? pod_ : ns, name);
  if (netdev != nullptr) return kernel_.state().LinkOf(*netdev);
  ADD_FAILURE() << "no link " << name << " in the pod";
  return {};
}

VfSettings PluginFixture::Vf(int n, int rail) {
  const auto& vfs = vfs_.at(static_cast<std::size_t>(rail));
  return *kernel_.state().Function(vfs.at(static_cast<std::size_t>(n)))->state;
}

}  // namespace railhead::testing
