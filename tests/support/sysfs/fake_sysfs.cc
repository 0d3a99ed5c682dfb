#include "tests/support/sysfs/fake_sysfs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "netns/base/text.h"
#include "netns/sys/pci_address.h"

namespace railhead::testing {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "FakeSysfs: %s\n", what.c_str());
  std::abort();
}

void Check(const std::error_code& error, const std::string& what) {
  if (error) Die(what + ": " + error.message());
}

PciAddress Address(const std::string& text) {
  const auto address = PciAddress::Parse(text);
  if (!address) Die("no PCI address: " + text);
  return *address;
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// The function whose routing id is `offset` above `pf`'s: 8 functions a device,
// 32 devices a bus (PCIe SR-IOV, "VF routing id").
PciAddress Behind(const PciAddress& pf, int offset) {
  const int id = (pf.bus << 8 | pf.device << 3 | pf.function) + offset;
  if (id > 0xffff) Die("too many VFs behind " + pf.ToString());
  return {pf.domain, static_cast<std::uint8_t>(id >> 8), static_cast<std::uint8_t>((id >> 3) & 0x1f),
          static_cast<std::uint8_t>(id & 7)};
}

std::string Hex(unsigned value, const char* format) {
  char buffer[16];
  (void)std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

// The bridge that is made for a PF without `bridges`: a root port of its own.
std::string RootPort(const PciAddress& pf) {
  return Hex(pf.domain, "%04x") + ":" + Hex(pf.bus & 0xf0U, "%02x") + ":" + Hex(pf.bus & 0x0fU, "%02x") +
         ".0";
}

}  // namespace

FakeSysfs::FakeSysfs() {
  std::string name = fs::temp_directory_path() / "railhead-sysfs-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) Die("cannot make " + name);
  directory_ = name;
}

FakeSysfs::FakeSysfs(std::string directory) : directory_(std::move(directory)), owned_(false) {}

FakeSysfs::~FakeSysfs() {
  std::error_code ignored;
  if (owned_) fs::remove_all(directory_, ignored);
}

std::string FakeSysfs::AddBridges(const std::string& address, const std::vector<std::string>& bridges,
                                  int numa_node) {
  const PciAddress endpoint = Address(address);
  std::string host;
  std::vector<PciAddress> chain;
  chain.reserve(bridges.size() + 2);
  for (const std::string& bridge : bridges) {
    if (chain.empty() && host.empty() && bridge.starts_with("pci")) {
      host = bridge;
    } else {
      chain.push_back(Address(bridge));
    }
  }
  if (bridges.empty()) chain.push_back(Address(RootPort(endpoint)));
  chain.push_back(endpoint);
  if (host.empty()) host = "pci" + Hex(chain.front().domain, "%04x") + ":" + Hex(chain.front().bus, "%02x");
  std::string path = "/sys/devices/" + host;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    const std::string bridge = chain[i].ToString();
    path.append("/").append(bridge);
    Write(path + "/class", "0x060400\n");
    Write(path + "/numa_node", std::to_string(numa_node) + "\n");
    WriteBridgeBuses(path, chain[i].bus, chain[i + 1].bus, endpoint.bus);
    Link("/sys/bus/pci/devices/" + bridge, path);
  }
  return path;
}

// The header of a bridge's configuration space: PCI-to-PCI Bridge Architecture
// Specification, section 3.2. A bridge reaches from its secondary bus to the highest
// bus below it.
void FakeSysfs::WriteBridgeBuses(const std::string& path, std::uint8_t primary, std::uint8_t secondary,
                                 std::uint8_t subordinate) {
  constexpr std::size_t kHeaderType = 0x0e;
  constexpr std::size_t kPrimary = 0x18;
  constexpr std::size_t kSubordinate = 0x1a;
  std::ifstream file(directory_ + path + "/config", std::ios::binary);
  const std::string before((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (before.size() > kSubordinate)
    subordinate = std::max(subordinate, static_cast<std::uint8_t>(before[kSubordinate]));
  std::string config(64, '\0');
  config[kHeaderType] = 1;
  config[kPrimary] = static_cast<char>(primary);
  config[kPrimary + 1] = static_cast<char>(secondary);
  config[kSubordinate] = static_cast<char>(subordinate);
  Write(path + "/config", config);
}

void FakeSysfs::AddPf(const FakePf& pf) {
  const std::string address = Address(pf.address).ToString();
  const std::string path = AddBridges(address, pf.bridges, pf.numa_node) + "/" + address;
  AddFunction({address, path, pf.vendor, pf.device, pf.numa_node}, pf.driver);
  if (pf.total_vfs > 0) {
    Write(path + "/sriov_totalvfs", std::to_string(pf.total_vfs) + "\n");
    Write(path + "/sriov_numvfs", "0\n");
  }
  if (!pf.netdev.empty()) AddNetdev(path, pf.netdev);
  if (!pf.rdma.empty()) AddRdma(path, pf.rdma);
}

void FakeSysfs::AddAccelerator(const FakeAccelerator& accelerator) {
  const std::string address = Address(accelerator.address).ToString();
  const std::string path = AddBridges(address, accelerator.bridges, accelerator.numa_node) + "/" + address;
  AddFunction(
      {address, path, accelerator.vendor, accelerator.device, accelerator.numa_node, accelerator.class_code},
      accelerator.driver);
  if (accelerator.uuid.empty()) return;
  Write("/proc/driver/nvidia/gpus/" + address + "/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 18\nGPU UUID: \t " + accelerator.uuid +
            "\nBus Type: \t PCIe\nBus Location: \t " + address + "\nDevice Minor: \t " +
            std::to_string(accelerator.minor) + "\n");
}

std::vector<std::string> FakeSysfs::AddVfs(const std::string& pf, int count, const FakeVfs& vfs) {
  const std::string pf_path = DevicePath(pf);
  const std::string parent = fs::path(pf_path).parent_path();
  const auto read = [&](const std::string& name) {
    std::ifstream file(directory_ + pf_path + "/" + name);
    std::string text;
    std::getline(file, text);
    return text;
  };
  std::string pf_netdev;
  for (std::error_code none;
       const auto& entry : fs::directory_iterator(directory_ + pf_path + "/net", none)) {
    pf_netdev = entry.path().filename();
  }
  const auto numa_node = static_cast<int>(ParseInt(read("numa_node")).value_or(-1));
  std::vector<std::string> addresses;
  for (int n = 0; n < count; ++n) {
    const std::string address = Behind(Address(pf), vfs.offset + n).ToString();
    std::string path = parent;
    path.append("/").append(address);
    AddFunction({address, path, read("vendor"), vfs.device, numa_node}, vfs.driver);
    Link(path + "/physfn", pf_path);
    Link(pf_path + "/virtfn" + std::to_string(n), path);
    const auto named = [&](const std::string& pattern) {
      return Replaced(Replaced(pattern, "{pf}", pf_netdev), "{n}", std::to_string(n));
    };
    if (!vfs.driver.empty() && !vfs.netdev.empty()) AddNetdev(path, named(vfs.netdev));
    if (!vfs.driver.empty() && !vfs.rdma.empty()) AddRdma(path, named(vfs.rdma));
    addresses.push_back(address);
  }
  Write(pf_path + "/sriov_numvfs", std::to_string(count) + "\n");
  return addresses;
}

void FakeSysfs::MoveToPod(const std::string& address) {
  const std::string path = DevicePath(address);
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory_ + path + "/net", none)) {
    Remove("/sys/class/net/" + entry.path().filename().string());
  }
  Remove(path + "/net");
}

void FakeSysfs::Unbind(const std::string& address) {
  MoveToPod(address);
  const std::string path = DevicePath(address);
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory_ + path + "/infiniband", none)) {
    const std::string ibdev = entry.path().filename();
    Remove("/sys/class/infiniband/" + ibdev);
    for (const auto& verbs : fs::directory_iterator(directory_ + path + "/infiniband_verbs", none)) {
      Remove("/sys/class/infiniband_verbs/" + verbs.path().filename().string());
    }
  }
  Remove(path + "/infiniband");
  Remove(path + "/infiniband_verbs");
  Remove(path + "/driver");
}

void FakeSysfs::AddVirtualNetdev(const std::string& netdev) {
  AddNetdev("/sys/devices/virtual", netdev);
  Remove("/sys/class/net/" + netdev + "/device");
}

void FakeSysfs::AddUpper(const std::string& lower, const std::string& upper) {
  const auto real = [&](const std::string& netdev) {
    std::error_code error;
    const std::string path = fs::canonical(directory_ + "/sys/class/net/" + netdev, error);
    Check(error, "no network device " + netdev);
    return path.substr(fs::canonical(directory_).string().size());
  };
  Link(real(lower) + "/upper_" + upper, real(upper));
  Link(real(upper) + "/lower_" + lower, real(lower));
}

void FakeSysfs::AddRxe(const std::string& ibdev, const std::string& netdev) {
  const std::string path = "/sys/devices/virtual/infiniband/" + ibdev;
  WriteRdmaPort(path);
  Write(path + "/parent", netdev + "\n");
  Link("/sys/class/infiniband/" + ibdev, path);
  const std::string verbs = "uverbs" + std::to_string(next_uverbs_++);
  Write("/sys/devices/virtual/infiniband_verbs/" + verbs + "/ibdev", ibdev + "\n");
  Link("/sys/class/infiniband_verbs/" + verbs, "/sys/devices/virtual/infiniband_verbs/" + verbs);
}

void FakeSysfs::AddGid(const std::string& ibdev, int index, const std::string& gid, const std::string& type,
                       const std::string& ndev, int port) {
  const std::string path = "/sys/class/infiniband/" + ibdev + "/ports/" + std::to_string(port);
  Write(path + "/gids/" + std::to_string(index), gid + "\n");
  Write(path + "/gid_attrs/types/" + std::to_string(index), type + "\n");
  Write(path + "/gid_attrs/ndevs/" + std::to_string(index), ndev + "\n");
}

void FakeSysfs::Write(const std::string& path, std::string_view content) {
  const fs::path full = directory_ + path;
  std::error_code error;
  fs::create_directories(full.parent_path(), error);
  Check(error, "making " + full.parent_path().string());
  std::ofstream file(full, std::ios::trunc);
  file << content;
  if (!file.flush()) Die("writing " + full.string());
}

void FakeSysfs::Link(const std::string& path, const std::string& target) {
  const fs::path full = directory_ + path;
  std::error_code error;
  fs::create_directories(full.parent_path(), error);
  Check(error, "making " + full.parent_path().string());
  fs::remove(full, error);
  // The kernel always ends a link with the target's name, even for a link to a directory above.
  const fs::path to = target;
  const fs::path relative = to.parent_path().lexically_relative(fs::path(path).parent_path()) / to.filename();
  fs::create_symlink(relative, full, error);
  Check(error, "linking " + full.string());
}

void FakeSysfs::Remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(directory_ + path, error);
  Check(error, "removing " + path);
}

void FakeSysfs::AddFunction(const Function& function, const std::string& driver) {
  const std::string& path = function.path;
  Write(path + "/class", function.class_code + "\n");
  Write(path + "/vendor", function.vendor + "\n");
  Write(path + "/device", function.device + "\n");
  Write(path + "/numa_node", std::to_string(function.numa_node) + "\n");
  Link("/sys/bus/pci/devices/" + function.address, path);
  if (driver.empty()) return;
  const std::string driver_path = "/sys/bus/pci/drivers/" + driver;
  Write(driver_path + "/bind", "");
  Write(driver_path + "/unbind", "");
  Link(path + "/driver", driver_path);
}

void FakeSysfs::AddNetdev(const std::string& device_path, const std::string& netdev) {
  const std::string path = device_path + "/net/" + netdev;
  Write(path + "/ifindex", std::to_string(next_ifindex_++) + "\n");
  Write(path + "/type", "1\n");
  Write(path + "/mtu", "1500\n");
  Write(path + "/carrier", "1\n");
  Link(path + "/device", device_path);
  Link("/sys/class/net/" + netdev, path);
}

void FakeSysfs::AddRdma(const std::string& device_path, const std::string& ibdev) {
  const std::string path = device_path + "/infiniband/" + ibdev;
  WriteRdmaPort(path);
  Write(path + "/node_guid", "0200:00ff:fe00:" + std::to_string(1000 + next_uverbs_) + "\n");
  Link(path + "/device", device_path);
  Link("/sys/class/infiniband/" + ibdev, path);
  const std::string verbs = "uverbs" + std::to_string(next_uverbs_++);
  Write(device_path + "/infiniband_verbs/" + verbs + "/ibdev", ibdev + "\n");
  Link("/sys/class/infiniband_verbs/" + verbs, device_path + "/infiniband_verbs/" + verbs);
}

void FakeSysfs::WriteRdmaPort(const std::string& path) {
  Write(path + "/ports/1/state", "4: ACTIVE\n");
  Write(path + "/ports/1/link_layer", "Ethernet\n");
  Write(path + "/node_type", "1: CA\n");
}

std::string FakeSysfs::DevicePath(const std::string& address) const {
  std::error_code error;
  const std::string path = fs::canonical(directory_ + "/sys/bus/pci/devices/" + address, error);
  Check(error, "no PCI function " + address);
  return path.substr(fs::canonical(directory_).string().size());
}

}  // namespace railhead::testing
