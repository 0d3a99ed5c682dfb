// The node's RDMA settings, processes and modules.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "cni/fabric/fabric.h"
#include "cni/state/paths.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/node/topology/find_by_nvml.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "deviceplugin/tools/doctor/facts.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/root_file.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"
#include "netns/ns/mount_propagation.h"
#include "netns/sys/selinux.h"

namespace railhead::doctor {
namespace {

// PROC_PID_INIT_INO of include/linux/proc_ns.h. A process in another PID namespace sees only that one's
// processes.
constexpr const char* kFirstPidNamespace = "pid:[4026531836]";

constexpr std::string_view kOnlyRootOnHost = "only root on the host sees the namespaces of all processes";

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
  // The variable of drivers/infiniband/core/device.c, which `rdma system set` changes.
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
    const auto function = FunctionIn(**link);
    if (!function) continue;
    facts->rdma_functions[name] = *function;
    if (const auto guid = ReadAttribute(root.Path("/sys/class/infiniband/" + name + "/node_guid"));
        guid && *guid)
      facts->node_guids[name] = **guid;
  }
}

}  // namespace

void ReadRdma(const Root& root, const KernelQuestions& kernel, NodeFacts* facts) {
  facts->rdma_exclusive = ReadMode(root);
  facts->rdma_order = Fact<std::vector<std::string>>::Of(kernel.rdma_order());
  ReadFunctions(root, facts);
  facts->verbs = Exists(root.Path("/sys/class/infiniband_verbs"));
  facts->rdma_cm = Exists(root.Path("/sys/class/misc/rdma_cm"));
  facts->rxe = Exists(root.Path("/sys/module/rdma_rxe"));
}

void ReadProcesses(const Root& root, NodeFacts* facts) {
  const std::string proc = root.Path("/proc/");
  const auto names = ListDirectory(proc);
  if (!names || !*names) {
    const std::string why = names ? "/proc does not exist" : Describe(names.error());
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
    if (!Contains(kRuntimes, **command)) continue;
    runtimes.push_back({static_cast<int>(*pid), **command, ReadMemlock(proc + name + "/limits")});
  }
  facts->runtimes = std::move(runtimes);
  AddNamed(root, &namespaces);
  const auto own = ReadLink(proc + "self/ns/net");
  if (own && *own) namespaces.erase(**own);
  // One other namespace is enough to know that the mode cannot be changed.
  facts->other_namespaces = all_seen || !namespaces.empty()
                                ? Fact<int>(static_cast<int>(namespaces.size()))
                                : Fact<int>::Unknown(std::string(kOnlyRootOnHost));
}

namespace {

// Whether a process can come to CAP_NET_ADMIN (capabilities(7)), in the host's user namespace: that one alone
// has all ids of root's (user_namespaces(7)).
bool MayBeNetAdmin(const std::string& process) {
  constexpr std::string_view kBounding = "CapBnd:";
  constexpr unsigned kNetAdmin = 12;  // CAP_NET_ADMIN
  const auto status = ReadFile(process + "/status");
  const auto ids = ReadAttribute(process + "/uid_map");
  if (!status || !*status || !ids || !*ids || !(*ids)->ends_with(" 4294967295")) return false;
  for (const std::string& line : Split(**status, '\n')) {
    if (!line.starts_with(kBounding)) continue;
    const auto first = line.find_first_not_of(" \t", kBounding.size());
    const auto bits = first == std::string::npos ? std::nullopt : ParseHex(line.substr(first));
    return bits && (*bits >> kNetAdmin & 1U) != 0;
  }
  return false;
}

// Of the process: kubelet's cgroups are called "pod" and the pod's UID, by systemd's driver with "_" for "-"
// (pkg/kubelet/cm/pod_container_manager_linux.go).
std::string PodOf(const std::string& process, const std::map<std::string, std::string>& pods) {
  auto cgroup = ReadFile(process + "/cgroup");
  if (!cgroup || !*cgroup) return "";
  std::ranges::replace(**cgroup, '_', '-');
  for (const auto& [uid, name] : pods) {
    if ((*cgroup)->find("pod" + uid) != std::string::npos) return name;
  }
  return "";
}

}  // namespace

Fact<std::set<std::string>> ReadNetAdmins(const Root& root, const std::map<std::string, std::string>& pods) {
  using Names = Fact<std::set<std::string>>;
  std::set<std::string> found;
  if (pods.empty()) return found;
  const std::string proc = root.Path("/proc/");
  const auto pid_namespace = ReadLink(proc + "self/ns/pid");
  const auto names = ListDirectory(proc);
  if (!names) return Names::Unknown(Describe(names.error()));
  if (!*names || !pid_namespace || *pid_namespace != kFirstPidNamespace)
    return Names::Unknown(std::string(kOnlyRootOnHost));
  for (const std::string& name : **names) {
    if (!ParseInt(name)) continue;
    const std::string pod = PodOf(proc + name, pods);
    if (!pod.empty() && MayBeNetAdmin(proc + name)) found.insert(pod);
  }
  return found;
}

namespace {

// Its directory in /proc; nullopt: no process of this name is seen.
Result<std::optional<std::string>> FindProcess(const Root& root, std::string_view called) {
  const std::string proc = root.Path("/proc/");
  const auto names = RH_TRY(ListDirectory(proc));
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (!ParseInt(name)) continue;
    const auto command = ReadAttribute(proc + name + "/comm");
    if (command && *command == called) return proc + name;
  }
  return std::nullopt;
}

// Where railheadd looks for it: its own root may be a container's.
Fact<bool> ReadNvmlProgram(const Root& root) {
  const auto process = FindProcess(root, "railheadd");
  if (!process) return Fact<bool>::Unknown(Describe(process.error()));
  if (!*process) return Fact<bool>::Unknown("railheadd does not run");
  const auto program = ReadLink(**process + "/exe");
  if (!program) return Fact<bool>::Unknown(Describe(program.error()));
  return topology::FindNvmlProgram(Root(**process + "/root"), program->value_or("")).has_value();
}

}  // namespace

void ReadGpuDriver(const Root& root, NodeFacts* facts) {
  facts->gpu.nvidia = Exists(root.Path("/sys/module/nvidia"));
  facts->gpu.peermem = Exists(root.Path("/sys/module/nvidia_peermem"));
  facts->gpu.nvml = ReadNvmlProgram(root);
  constexpr const char* kVersion = "/proc/driver/nvidia/version";
  const auto text = ReadFile(root.Path(kVersion));
  if (!text) {
    facts->gpu.open = Fact<bool>::Unknown(Describe(text.error()));
  } else if (!*text) {
    facts->gpu.open = Fact<bool>::Unknown(std::string("no such file: ") + kVersion);
  } else {
    facts->gpu.open = (*text)->find("Open Kernel Module") != std::string::npos;
  }
}

// Whether the directories of other programs are where railheadd reads them.

namespace {

constexpr const char* kDefaultKubeletRoot = "/var/lib/kubelet";
constexpr std::string_view kRootDir = "--root-dir";

// From its command line: this option is in no configuration file (cmd/kubelet/app/options).
std::string RootDirOf(const std::string& command_line) {
  std::string root_dir = kDefaultKubeletRoot;
  const auto words = Split(command_line, '\0');
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word.starts_with("--root-dir=")) root_dir = word.substr(kRootDir.size() + 1);
    if (word == kRootDir && i + 1 < words.size()) root_dir = words[i + 1];
  }
  while (root_dir.size() > 1 && root_dir.ends_with('/')) root_dir.pop_back();
  return root_dir;
}

Result<bool> IsSameDirectory(const std::string& ours, const std::string& theirs) {
  struct stat one {};
  struct stat other {};
  if (::stat(theirs.c_str(), &other) != 0) return FailSys(errno, "looking at " + theirs);
  if (::stat(ours.c_str(), &one) != 0) return false;
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

Fact<KubeletFacts> ReadKubelet(const Root& root) {
  const auto process = FindProcess(root, "kubelet");
  if (!process) return Fact<KubeletFacts>::Unknown(Describe(process.error()));
  if (!*process) return Fact<KubeletFacts>::Unknown("no process called kubelet is seen");
  const auto line = ReadFile(**process + "/cmdline");
  if (!line) return Fact<KubeletFacts>::Unknown(Describe(line.error()));
  KubeletFacts facts;
  facts.root_dir = RootDirOf(line->value_or(""));
  facts.has_our_pods = Fact<bool>::Of(
      IsSameDirectory(paths::KubeletPods(root), **process + "/root" + facts.root_dir + "/pods"));
  return facts;
}

Fact<std::vector<std::string>> ReadHiddenDirectories(const Root& root) {
  std::vector<std::string> hidden;
  for (const char* directory : kNetnsDirectories) {
    if (!Exists(root.Path(directory))) continue;
    const auto sees = SeesMountsOfHost(root, directory);
    if (!sees) return Fact<std::vector<std::string>>::Unknown(Describe(sees.error()));
    if (!*sees) hidden.emplace_back(directory);
  }
  return hidden;
}

// The files that root trusts.

namespace {

// Railhead's records in a folder.
Result<void> AddRecordsIn(const std::string& folder, std::vector<std::string>* files) {
  const auto names = RH_TRY(ListDirectory(folder));
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (name.ends_with(".json")) files->push_back(std::string(folder).append("/").append(name));
  }
  return {};
}

Result<std::vector<Error>> OpenFiles(const Root& root) {
  std::vector<std::string> files = {root.Path(kFabricPath), root.Path(topology::kTopologyPath),
                                    root.Path("/etc/railhead/node-name"),
                                    root.Path("/etc/railhead/node-address"), paths::KubeletCheckpoint(root)};
  for (const std::string& folder :
       {root.Path("/run/railhead"), paths::DisplacedNames(root), paths::Tenants(root),
        root.Path("/var/lib/railhead"), paths::Allocations(root)})
    RH_TRY(AddRecordsIn(folder, &files));
  std::vector<Result<void>> checked = {CheckVolumeFile(root.Path(kSriovdpConfigPath))};
  for (const std::string& file : files) checked.push_back(CheckRootFile(file));
  std::map<std::string, Error> by_fix;  // a folder's fault is that of each file in it
  for (const auto& result : checked) {
    if (result) continue;
    const Error& error = result.error();
    if (error.sys_errno != 0) return Fail(error);
    by_fix.emplace(error.hint.empty() ? error.message : error.hint, error);
  }
  std::vector<Error> errors;
  errors.reserve(by_fix.size());
  for (auto& [fix, error] : by_fix) errors.push_back(std::move(error));
  return errors;
}

}  // namespace

Fact<std::vector<Error>> ReadOpenFiles(const Root& root) {
  return Fact<std::vector<Error>>::Of(OpenFiles(root));
}

// The container runtime's configuration, and other users of the node's devices.

namespace {

constexpr const char* kSocketDirectory = "/var/lib/kubelet/device-plugins";
// sriov-network-device-plugin has its sockets here if the directory exists.
constexpr const char* kRegistryDirectory = "/var/lib/kubelet/plugins_registry";
constexpr const char* kCniDirectory = "/etc/cni/net.d";

// The keys by which CNI configurations name a device: host-device, sriov-cni, macvlan, ipvlan.
constexpr std::array kDeviceFields = {"device", "pciBusID", "deviceID", "master"};

Fact<std::vector<std::string>> ReadSockets(const Root& root) {
  using Names = Fact<std::vector<std::string>>;
  std::vector<std::string> sockets;
  bool any = false;
  for (const char* directory : {kSocketDirectory, kRegistryDirectory}) {
    const auto names = ListDirectory(root.Path(directory));
    if (!names) return Names::Unknown(Describe(names.error()));
    if (!*names) continue;
    any = true;
    for (const std::string& name : **names) {
      const bool ours = name == "kubelet.sock" || name.starts_with("railhead-");
      if (name.ends_with(".sock") && !ours) sockets.push_back(name);
    }
  }
  if (!any) return Names::Unknown(std::string("no such directory: ") + kSocketDirectory);
  return sockets;
}

// Plugins name networks in many ways: `subnet` below `ipam` or `ranges`, lists of pools, keys for services.
// Each prefix is one, but of what `routes` or `exclude` holds.
void AddNetworks(const nlohmann::json& value, std::vector<IpPrefix>* networks) {
  if (value.is_string()) {
    const auto prefix = IpPrefix::Parse(value.get<std::string>());
    if (prefix && prefix->length > 0) networks->push_back(prefix->Network());
    return;
  }
  if (!value.is_structured()) return;
  for (const auto& [key, one] : value.items()) {
    if (key != "routes" && key != "exclude") AddNetworks(one, networks);
  }
}

void AddRoutes(const nlohmann::json& value, std::vector<IpPrefix>* routes) {
  if (!value.is_structured()) return;
  for (const auto& [key, one] : value.items()) {
    if (key == "routes") AddNetworks(one, routes);
    AddRoutes(one, routes);
  }
}

// Of other networks than the cluster's, or ours.
bool IsFurther(const std::string& type) {
  constexpr std::array kTypes = {"railhead", "host-device", "sriov", "ib-sriov", "macvlan", "ipvlan", "vlan"};
  return Contains(kTypes, type);
}

CniUse UseOf(const std::string& file, JsonReader plugin, const nlohmann::json& json) {
  CniUse use;
  use.file = file;
  use.type = plugin.String("type").value_or("");
  for (const char* field : kDeviceFields) {
    if (auto device = plugin.String(field)) use.devices.push_back(*std::move(device));
  }
  if (IsFurther(use.type)) return use;
  AddNetworks(json, &use.networks);
  AddRoutes(json, &use.routes);
  return use;
}

// Skips a file that is not a CNI configuration: the runtime reports that.
void AddUses(const std::string& file, const std::string& text, std::vector<CniUse>* uses) {
  const auto document = JsonDocument::Parse(text, file);
  if (!document) return;
  JsonReader reader = document->Root();
  if (!reader.status()) return;
  if (!reader.Has("plugins")) {
    uses->push_back(UseOf(file, reader, document->json()));
    return;
  }
  const auto plugins = reader.Objects("plugins");
  for (std::size_t i = 0; i < plugins.size(); ++i)
    uses->push_back(UseOf(file, plugins[i], document->json()["plugins"][i]));
}

bool IsConfiguration(const std::string& name) {
  return name.ends_with(".conf") || name.ends_with(".conflist") || name.ends_with(".json");
}

}  // namespace

Fact<std::vector<CniUse>> ReadCni(const Root& root) {
  using Uses = Fact<std::vector<CniUse>>;
  const auto names = ListDirectory(root.Path(kCniDirectory));
  if (!names) return Uses::Unknown(Describe(names.error()));
  if (!*names) return Uses::Unknown(std::string("no such directory: ") + kCniDirectory);
  std::vector<CniUse> uses;
  for (const std::string& name : **names) {
    if (!IsConfiguration(name)) continue;
    const auto text = ReadFile(root.Path(kCniDirectory) + "/" + name);
    if (!text) return Uses::Unknown(Describe(text.error()));
    if (*text) AddUses(name, **text, &uses);
  }
  return uses;
}

namespace {

Result<std::map<std::string, std::string>> UnreadableMounts(const Root& root) {
  std::map<std::string, std::string> labels;
  for (const std::string& directory : {paths::NcclConfigRoot(root), paths::DeviceNcclConfigRoot(root)}) {
    for (const std::string& owner : RH_TRY(ListDirectory(directory)).value_or(std::vector<std::string>{})) {
      const std::string folder = std::string(directory).append("/").append(owner);
      for (const std::string& name : RH_TRY(ListDirectory(folder)).value_or(std::vector<std::string>{})) {
        const std::string path = std::string(folder).append("/").append(name);
        if (auto label = LabelAgainstContainers(root, path); !label.empty()) labels[path] = std::move(label);
      }
    }
  }
  return labels;
}

}  // namespace

void ReadSelinux(const Root& root, NodeFacts* facts) {
  facts->selinux = HasSelinux(root);
  facts->unreadable_mounts = Fact<std::map<std::string, std::string>>::Of(UnreadableMounts(root));
}

void ReadRuntime(const Root& root, NodeFacts* facts) {
  std::vector<std::string> running;
  if (facts->runtimes) {
    for (const ProcessFacts& process : *facts->runtimes) running.push_back(process.name);
  }
  facts->cdi = ReadCdiSwitch(root, running);
  facts->plugin_sockets = ReadSockets(root);
  facts->cni = ReadCni(root);
  facts->kubelet = ReadKubelet(root);
  facts->hidden_netns = ReadHiddenDirectories(root);
}

}  // namespace railhead::doctor
