// RDMA as the node has it, its processes and modules.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <set>

#include "deviceplugin/tools/doctor/read_facts.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

// PROC_PID_INIT_INO of include/linux/proc_ns.h: who is in another one sees only its own processes.
constexpr const char* kFirstPidNamespace = "pid:[4026531836]";

constexpr std::array<std::string_view, 3> kRuntimes = {"containerd", "crio", "dockerd"};

// "../../devices/pci0000:40/.../0000:43:00.2/infiniband/mlx5_4"; nullopt: not on PCI.
std::optional<PciAddress> FunctionIn(const std::string& path) {
  std::optional<PciAddress> nearest;
  for (const std::string& part : Split(path, '/')) {
    if (const auto address = PciAddress::Parse(part)) nearest = address;
  }
  return nearest;
}

Fact<bool> ReadMode(const Root& root) {
  // drivers/infiniband/core/device.c: the variable itself, which `rdma system set` changes.
  constexpr const char* kPath = "/sys/module/ib_core/parameters/netns_mode";
  const auto text = ReadAttribute(root.Path(kPath));
  if (!text) return Fact<bool>::Unknown(Describe(text.error()));
  if (!*text) return Fact<bool>::Unknown("ib_core is not loaded, or older than Linux 5.2");
  return **text == "N";
}

// Named namespaces: bind mounts of the kernel's file.
void AddNamed(const Root& root, std::set<std::string>* namespaces) {
  const std::string directory = root.Path("/run/netns");
  struct stat own {};
  if (::stat("/proc/self/ns/net", &own) != 0) return;
  const auto names = ListDirectory(directory);
  if (!names || !*names) return;
  for (const std::string& name : **names) {
    struct stat facts {};
    const std::string path = std::string(directory).append("/").append(name);
    if (::stat(path.c_str(), &facts) == 0 && facts.st_dev == own.st_dev)
      namespaces->insert("net:[" + std::to_string(facts.st_ino) + "]");
  }
}

// The soft limit, of "Max locked memory       65536                65536                bytes".
Fact<std::string> ReadMemlock(const std::string& path) {
  constexpr std::string_view kName = "Max locked memory";
  const auto text = ReadFile(path);
  if (!text) return Fact<std::string>::Unknown(Describe(text.error()));
  for (const std::string& line : Split(text->value_or(""), '\n')) {
    if (!line.starts_with(kName)) continue;
    const auto start = line.find_first_not_of(' ', kName.size());
    if (start == std::string::npos) break;
    return line.substr(start, line.find(' ', start) - start);
  }
  return Fact<std::string>::Unknown("its limits cannot be read");
}

void ReadFunctions(const Root& root, NodeFacts* facts) {
  const std::string directory = root.Path("/sys/class/infiniband/");
  const auto devices = ListRdmaDevices(root);
  for (const std::string& name : devices.value_or(std::vector<std::string>{})) {
    const auto link = ReadLink(directory + name);
    if (!link || !*link) continue;
    if (const auto function = FunctionIn(**link)) facts->rdma_functions[name] = *function;
  }
}

}  // namespace

void ReadRdma(const Root& root, const KernelQuestions& kernel, FactKinds kinds, NodeFacts* facts) {
  if (kinds.Has(FactKind::kRdmaMode)) facts->rdma_exclusive = ReadMode(root);
  if (kinds.Has(FactKind::kRdmaOrder))
    facts->rdma_order = Fact<std::vector<std::string>>::Of(kernel.rdma_order());
  if (kinds.Has(FactKind::kRdmaDevices)) ReadFunctions(root, facts);
  if (!kinds.Has(FactKind::kModules)) return;
  facts->verbs = Exists(root.Path("/sys/class/infiniband_verbs"));
  facts->rdma_cm = Exists(root.Path("/sys/class/misc/rdma_cm"));
  facts->rxe = Exists(root.Path("/sys/module/rdma_rxe"));
}

void ReadProcesses(const Root& root, NodeFacts* facts) {
  const std::string proc = root.Path("/proc/");
  const auto names = ListDirectory(proc);
  if (!names || !*names) {
    const std::string why = names ? "there is no /proc" : Describe(names.error());
    facts->runtimes = Fact<std::vector<ProcessFacts>>::Unknown(why);
    facts->other_namespaces = Fact<int>::Unknown(why);
    return;
  }
  std::vector<ProcessFacts> runtimes;
  std::set<std::string> namespaces;
  const auto pid_namespace = ReadLink(proc + "self/ns/pid");
  bool all_seen = pid_namespace && *pid_namespace == kFirstPidNamespace;
  for (const std::string& name : **names) {
    const auto pid = ParseInt(name);
    if (!pid) continue;
    const auto ns = ReadLink(proc + name + "/ns/net");
    if (ns && *ns) namespaces.insert(**ns);
    all_seen = all_seen && (ns.has_value() || ns.error().code != ErrorCode::kPermission);
    const auto command = ReadAttribute(proc + name + "/comm");
    if (!command || !*command) continue;
    if (std::find(kRuntimes.begin(), kRuntimes.end(), **command) == kRuntimes.end()) continue;
    runtimes.push_back({static_cast<int>(*pid), **command, ReadMemlock(proc + name + "/limits")});
  }
  facts->runtimes = std::move(runtimes);
  AddNamed(root, &namespaces);
  const auto own = ReadLink(proc + "self/ns/net");
  if (own && *own) namespaces.erase(**own);
  // One that is seen is enough to know that the mode cannot be changed.
  facts->other_namespaces =
      all_seen || !namespaces.empty()
          ? Fact<int>(static_cast<int>(namespaces.size()))
          : Fact<int>::Unknown("only root on the host sees the namespaces of all processes");
}

void ReadGpuDriver(const Root& root, NodeFacts* facts) {
  facts->gpu.nvidia = Exists(root.Path("/sys/module/nvidia"));
  facts->gpu.peermem = Exists(root.Path("/sys/module/nvidia_peermem"));
  facts->gpu.kernel =
      ReadAttribute(root.Path("/proc/sys/kernel/osrelease")).value_or(std::nullopt).value_or("");
  constexpr const char* kVersion = "/proc/driver/nvidia/version";
  const auto text = ReadFile(root.Path(kVersion));
  if (!text) {
    facts->gpu.open = Fact<bool>::Unknown(Describe(text.error()));
  } else if (!*text) {
    facts->gpu.open = Fact<bool>::Unknown(std::string("there is no ") + kVersion);
  } else {
    facts->gpu.open = (*text)->find("Open Kernel Module") != std::string::npos;
  }
}

}  // namespace railhead::doctor
