#include "bench/node_tree.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/support/sysfs/machines.h"

namespace railhead::bench {
namespace {

// Of MakeDgxH100: NICs with two ports are for storage.
bool IsStorage(const std::string& nic) {
  return nic.rfind("0000:29:", 0) == 0 || nic.rfind("0000:aa:", 0) == 0;
}

std::string DeviceOf(const std::string& address) {
  return "/sys/bus/pci/devices/" + address;
}

// What a ConnectX PF has and the bare tree lacks.
void AddCounters(testing::FakeSysfs& sysfs, const std::string& pf, const std::string& number) {
  sysfs.Write(DeviceOf(pf) + "/sriov_totalvfs", "128\n");
  const std::string errors = "RxErr 0\nBadTLP 0\nBadDLLP 0\nRollover 0\n";
  for (const char* kind : {"FATAL", "NONFATAL"}) {
    std::string name = std::string("/aer_dev_") + kind;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    sysfs.Write(DeviceOf(pf) + name, errors + "TOTAL_ERR_" + kind + " 0\n");
  }
  const std::string net = "/sys/class/net/rail" + number;
  sysfs.Write(net + "/flags", "0x1003\n");
  sysfs.Write(net + "/operstate", "up\n");
  sysfs.Write(net + "/carrier_down_count", "1\n");
  const std::string port = "/sys/class/infiniband/mlx5_" + number + "/ports/1";
  for (const char* name : {"symbol_error", "link_error_recovery", "link_downed",
                           "local_link_integrity_errors", "excessive_buffer_overrun_errors"}) {
    sysfs.Write(port + "/counters/" + name, "0\n");
  }
  sysfs.Write(port + "/counters/port_xmit_discards", "0\n");
}

}  // namespace

std::string FabricOf(const NodeTree& tree, bool late) {
  nlohmann::ordered_json fabric;
  fabric["version"] = 1;
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < tree.pfs.size(); ++i) {
    const std::string number = std::to_string(i);
    names.push_back("r" + number);
    fabric["rails"].push_back(
        {{"name", "r" + number},
         {"pf", tree.pfs[i]},
         {"vlan", 100 + static_cast<int>(i)},
         {"subnet", "10." + std::to_string(100 + i) + ".0.0/22"},
         {"nodeRanges",
          {{"node0", "10." + std::to_string(100 + i) + ".0.10-10." + std::to_string(100 + i) + ".0.200"}}}});
  }
  fabric["pools"] = nlohmann::ordered_json::array();
  fabric["pools"].push_back({{"resource", kNodeResource},
                             {"rails", names},
                             {"device", "vf"},
                             {"binding", late ? "late" : "early"}});
  return fabric.dump(2) + "\n";
}

NodeTree BuildNode(const std::string& directory, int vfs_per_pf, bool late) {
  testing::FakeSysfs sysfs(directory);
  const testing::FakeMachine machine = testing::MakeDgxH100(sysfs);
  NodeTree tree;
  tree.gpus = machine.accelerators;
  for (std::size_t i = 0; i < machine.nics.size(); ++i) {
    const std::string& nic = machine.nics[i];
    const std::string number = std::to_string(i);
    AddCounters(sysfs, nic, number);
    tree.netdevs.push_back("rail" + number);
    if (IsStorage(nic)) continue;
    tree.pfs.push_back(nic);
    testing::FakeVfs vfs;
    vfs.rdma = "mlx5_{pf}_{n}";
    for (std::string& vf : sysfs.AddVfs(nic, vfs_per_pf, vfs)) tree.vfs.push_back(std::move(vf));
    for (int n = 0; n < vfs_per_pf; ++n) {
      tree.netdevs.push_back("rail" + number + "v" + std::to_string(n));
      sysfs.Write("/sys/class/net/" + tree.netdevs.back() + "/flags", "0x1003\n");
    }
  }
  std::sort(tree.vfs.begin(), tree.vfs.end());
  sysfs.Write("/etc/railhead/node-name", "node0\n");
  sysfs.Write("/etc/railhead/fabric.json", FabricOf(tree, late));
  return tree;
}

}  // namespace railhead::bench
