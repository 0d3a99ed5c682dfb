// Limits, modules, drivers and firmware of the node.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/doctor/verdict.h"
#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

// The module that makes RDMA devices for a driver's PFs.
std::string RdmaModuleOf(const std::string& driver) {
  constexpr std::array<std::pair<std::string_view, const char*>, 9> kModules = {{{"mlx5_core", "mlx5_ib"},
                                                                                 {"mlx4_core", "mlx4_ib"},
                                                                                 {"ice", "irdma"},
                                                                                 {"i40e", "irdma"},
                                                                                 {"bnxt_en", "bnxt_re"},
                                                                                 {"qede", "qedr"},
                                                                                 {"hns3", "hns_roce_hw_v2"},
                                                                                 {"cxgb4", "iw_cxgb4"},
                                                                                 {"mana", "mana_ib"}}};
  for (const auto& [name, module] : kModules) {
    if (name == driver) return module;
  }
  return {};
}

bool IsSoft(const NodeFacts& facts, const PfFacts& pf) {
  const Rail* rail = facts.RailOf(pf);
  return rail != nullptr && rail->soft_roce;
}

void JudgeRdmaDevice(const NodeFacts& facts, const PfFacts& pf, Verdict* verdict) {
  if (IsSoft(facts, pf)) {
    if (facts.rxe) {
      verdict->Ok("rdma_rxe is loaded");
    } else {
      verdict->Note("rdma_rxe is not loaded; the kernel loads it with the first device",
                    "modprobe rdma_rxe shows whether it is installed");
    }
    return;
  }
  if (!pf.rdma.empty()) {
    verdict->Ok(pf.Name() + " is " + pf.rdma);
  } else if (pf.netdev.empty()) {
    verdict->Skip(pf.Name() + " is not in this namespace, nor may its RDMA device be");
  } else {
    const std::string module = RdmaModuleOf(pf.driver);
    verdict->Fail(pf.Name() + " (" + pf.driver + ") has no RDMA device",
                  module.empty() ? "load the RDMA module of its driver, or \"softRoce\": true for the rail"
                                 : "modprobe " + module);
  }
}

// docs/reference/kernel-interfaces.md lists what each release brought.
constexpr LinuxRelease kOldest{5, 4};
constexpr LinuxRelease kFloor{5, 10};
constexpr LinuxRelease kRxeInPods{7, 0};

std::string Hex(std::uint16_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned shift = 16; shift > 0; shift -= 4) text += kDigits[(number >> (shift - 4)) & 0xfU];
  return text;
}

std::string WhyDisplaced(const std::string& device, const std::string& name) {
  return "device " + device + " has a substitute name, since another interface is called " + name;
}

}  // namespace

Verdict CheckKernel(const NodeFacts& facts) {
  Verdict verdict;
  const auto release = facts.Release();
  if (!release) return verdict.Skip("the release of the kernel is not known");
  const std::string name = "Linux " + facts.kernel;
  if (*release < kOldest) return verdict.Fail(name + " is older than 5.4", "Linux 5.10 or later");
  if (*release < kFloor) {
    verdict.Warn(
        name +
            " is older than 5.10: \"altNames\" need 5.5, and DEL does not undo a pod's ethtool settings "
            "before 5.7",
        "Linux 5.10 or later");
  }
  const bool soft = facts.fabric && Contains(facts.fabric->rails, true, &Rail::soft_roce);
  if (soft && *release < kRxeInPods)
    verdict.Warn(name + " has soft RoCE in the host's namespace only, and pods need it",
                 "Linux 7.0 or later");
  if (verdict.observations().empty()) verdict.Ok(name);
  return verdict;
}

Verdict CheckMemlock(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.runtimes) return verdict.Skip(facts.runtimes.why());
  for (const ProcessFacts& process : *facts.runtimes) {
    const std::string name = process.name + " (process " + std::to_string(process.pid) + ")";
    if (!process.memlock) {
      verdict.Skip(name + ": " + process.memlock.why());
    } else if (*process.memlock == "unlimited") {
      verdict.Ok(name + ": unlimited");
    } else {
      verdict.Warn(
          name + " may lock " + *process.memlock + " bytes only",
          "LimitMEMLOCK=infinity in its systemd unit (systemctl edit " + process.name +
              "), then restart it; or CAP_IPC_LOCK for the containers, which has no effect for those "
              "that do not run as root");
    }
  }
  if (verdict.observations().empty())
    verdict.Skip("no container runtime is among the processes that can be seen (in a container: hostPID)");
  return verdict;
}

Verdict CheckModules(const NodeFacts& facts) {
  Verdict verdict;
  if (facts.verbs) {
    verdict.Ok("ib_uverbs is loaded");
  } else {
    verdict.Fail("ib_uverbs is not loaded", "modprobe ib_uverbs");
  }
  if (facts.rdma_cm) {
    verdict.Ok("rdma_ucm is loaded");
  } else {
    verdict.Warn("rdma_ucm is not loaded: /dev/infiniband/rdma_cm is missing", "modprobe rdma_ucm");
  }
  if (!facts.pfs_unknown.empty()) verdict.Skip(facts.pfs_unknown);
  for (const PfFacts& pf : facts.pfs) JudgeRdmaDevice(facts, pf, &verdict);
  return verdict;
}

Verdict CheckFirmware(const NodeFacts& facts) {
  Verdict verdict;
  // The first PF of each kind. The others must match it.
  std::map<std::pair<std::uint16_t, std::uint16_t>, const PfFacts*> kinds;
  for (const PfFacts& pf : facts.pfs) {
    if (!pf.firmware) {
      verdict.Skip(pf.Name() + ": " + pf.firmware.why());
      continue;
    }
    const std::string text = pf.Name() + ": " + Hex(pf.vendor) + ":" + Hex(pf.device) + ", " + pf.driver +
                             (pf.driver_version ? " " + *pf.driver_version : std::string()) + ", firmware " +
                             *pf.firmware;
    const auto [first, is_first] = kinds.try_emplace({pf.vendor, pf.device}, &pf);
    if (is_first || *first->second->firmware == *pf.firmware) {
      verdict.Ok(text);
    } else {
      verdict.Warn(text + ", unlike " + first->second->Name() + " with " + *first->second->firmware,
                   "bring the NICs to one firmware");
    }
  }
  if (verdict.observations().empty()) verdict.Skip(facts.WhyNoPf());
  return verdict;
}

Verdict CheckFiles(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.open_files) return verdict.Skip(facts.open_files.why());
  for (const Error& error : *facts.open_files) verdict.Warn(error.message, error.hint);
  if (verdict.observations().empty()) verdict.Ok("only root can change them");
  return verdict;
}

Verdict CheckRecords(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.records) return verdict.Skip(facts.records.why());
  for (const UnreadableEntry& entry : facts.records->unreadable) {
    verdict.Fail("the journal entry " + entry.key.ToString() + " of " +
                     Join({entry.devices.begin(), entry.devices.end()}, ", ") +
                     " cannot be read: " + entry.error.message,
                 "railctl journal show " + entry.path + "; railctl journal restore " + entry.path);
  }
  for (const auto& [device, name] : facts.records->displaced) {
    verdict.Warn(WhyDisplaced(device, name),
                 "ip link show " + name + "; the device gets its name back when that is free");
  }
  for (const std::string& name : facts.records->altered_specs) {
    verdict.Warn("/run/cdi/" + name + " was removed or changed by another program",
                 "railheadd writes it again with its next pass; find what cleans /run/cdi");
  }
  if (const auto& error = facts.records->drains_error) {
    verdict.Fail("the list of drained devices cannot be read, and no device is given out: " + error->message,
                 "correct " + std::string(health::kDrainsFile.path) + ", or remove it and drain again");
  }
  for (const ConflictSource& source : facts.records->conflict_sources) {
    verdict.Warn(
        source.ToString() + ": ADDs ignore that and use the addresses nevertheless",
        "delete that pod, or switch proxy ARP off if it is a router; \"spoofchk\" keeps pods to one MAC");
  }
  if (const auto& error = facts.records->store_error)
    verdict.Fail("the address store cannot be read: " + error->message, error->hint);
  if (verdict.observations().empty())
    verdict.Ok(
        "all entries, drains and addresses can be read, all devices have their names, all CDI specs are "
        "there");
  return verdict;
}

// The container runtime, and who else hands out the node's devices.

namespace {

// The configuration version. Version 3 came with containerd 2.0, in which enable_cdi is on by default.
constexpr int kVersionWithCdi = 3;

bool UsesCdi(const NodeFacts& facts) {
  if (!facts.fabric) return true;
  return std::ranges::any_of(facts.fabric->pools, [&](const Pool& pool) {
    return pool.nccl_config.value_or(facts.fabric->nccl_config) == NcclConfigPolicy::kRequired &&
           pool.device_nodes == DeviceNodeMode::kCdi;
  });
}

bool ReadsOurDirectory(const std::vector<std::string>& directories) {
  return std::ranges::any_of(directories, [](const std::string& directory) {
    return directory == "/run/cdi" || directory == "/var/run/cdi" || directory == "/run/cdi/" ||
           directory == "/var/run/cdi/";
  });
}

Verdict JudgeContainerd(const CdiSwitch& cdi) {
  const std::string fix =
      "enable_cdi = true in section [plugins.\"io.containerd.grpc.v1.cri\"] of containerd's config.toml "
      "(version 3: "
      "[plugins.'io.containerd.cri.v1.runtime']), then restart containerd; or \"deviceNodes\": \"mount\" in "
      "the "
      "pool";
  const std::string where = cdi.path.empty() ? "containerd without configuration" : cdi.path;
  if (cdi.enabled) {
    return *cdi.enabled ? Verdict().Ok(where + ": enable_cdi = true")
                        : Verdict().Fail(where + ": enable_cdi = false", fix);
  }
  if (cdi.version >= kVersionWithCdi) return Verdict().Ok(where + ": on by default since containerd 2.0");
  return Verdict().Warn(where + " does not say enable_cdi: containerd 1.7 then has it off, 2.0 and later on",
                        fix);
}

// Words in the socket of a device plugin for the same kind of devices. Plugins name sockets after resources.
bool LooksLikeOurs(const std::string& socket) {
  constexpr std::array<std::string_view, 8> kWords = {"sriov", "rdma",     "roce",       "hca",
                                                      "mlnx",  "mellanox", "infiniband", "mlx5"};
  const std::string lower = ToLower(socket);
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

// Names and addresses of the rails' PFs and their VFs.
std::set<std::string> DevicesOf(const NodeFacts& facts) {
  std::set<std::string> devices;
  for (const PfFacts& pf : facts.pfs) {
    devices.insert(pf.address.ToString());
    if (!pf.netdev.empty()) devices.insert(pf.netdev);
    for (const PciAddress& vf : pf.vfs) devices.insert(vf.ToString());
  }
  return devices;
}

// Plugins that move a device into a pod. StacksOn() has the plugins that put another device on top.
bool Takes(const std::string& type) {
  return type == "host-device" || type == "sriov" || type == "ib-sriov" || type == "accelerated-bridge";
}
bool StacksOn(const std::string& type) {
  return type == "macvlan" || type == "ipvlan" || type == "vlan" || type == "bridge";
}

void JudgeCniUse(const CniUse& use, const std::set<std::string>& ours, Verdict* verdict) {
  const auto device =
      std::ranges::find_if(use.devices, [&](const std::string& name) { return ours.contains(name); });
  const std::string name = use.file + ": " + use.type;
  if (device != use.devices.end() && Takes(use.type)) {
    verdict->Fail(name + " takes " + *device, "remove it, or the device's rail from fabric.json");
  } else if (device != use.devices.end() && StacksOn(use.type)) {
    verdict->Warn(name + " stacks on " + *device + ", whose GID table its pods then fill",
                  "use another network device for it");
  } else if (use.type == "rdma" || use.type == "sriov" || use.type == "ib-sriov") {
    verdict->Note(name + " attaches the same kind of devices",
                  "make sure that it is given devices of another resource than Railhead's");
  }
}

}  // namespace

Verdict CheckCdi(const NodeFacts& facts) {
  Verdict verdict;
  if (!UsesCdi(facts)) return verdict.Skip("no pool delivers by CDI");
  if (!facts.cdi) return verdict.Skip(facts.cdi.why());
  if (facts.cdi->directories && !ReadsOurDirectory(*facts.cdi->directories)) {
    return verdict.Fail(facts.cdi->path + ": cdi_spec_dirs without /var/run/cdi",
                        "add /var/run/cdi to cdi_spec_dirs, and restart the runtime");
  }
  if (facts.cdi->runtime == CdiSwitch::Runtime::kCrio) return verdict.Ok("CRI-O has CDI always on");
  return JudgeContainerd(*facts.cdi);
}

Verdict CheckPlugins(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.plugin_sockets) return verdict.Skip(facts.plugin_sockets.why());
  for (const std::string& socket : *facts.plugin_sockets) {
    if (LooksLikeOurs(socket)) {
      verdict.Warn(
          "another device plugin: " + socket,
          "make sure that its selectors leave out the rails' PFs, or remove it (docs/operate/migration.md)");
    } else {
      verdict.Ok("another device plugin, for something else: " + socket);
    }
  }
  if (verdict.observations().empty()) verdict.Ok("no other device plugin");
  return verdict;
}

Verdict CheckCni(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.cni) return verdict.Skip(facts.cni.why());
  if (!facts.pfs_unknown.empty()) return verdict.Skip(facts.pfs_unknown);
  const std::set<std::string> ours = DevicesOf(facts);
  for (const CniUse& use : *facts.cni) JudgeCniUse(use, ours, &verdict);
  if (verdict.observations().empty())
    verdict.Ok(std::to_string(facts.cni->size()) + " plugins are configured, none for the rails' devices");
  return verdict;
}

Verdict CheckKubelet(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.kubelet) return verdict.Skip(facts.kubelet.why());
  const KubeletFacts& kubelet = *facts.kubelet;
  if (!kubelet.has_our_pods) return verdict.Skip(kubelet.has_our_pods.why());
  if (*kubelet.has_our_pods) return verdict.Ok("kubelet runs with --root-dir " + kubelet.root_dir);
  return verdict.Fail("kubelet has its pods in " + kubelet.root_dir +
                          "/pods, and /var/lib/kubelet/pods is another directory or absent",
                      "DaemonSet: component kubelet-root; on the host: links from /var/lib/kubelet to pods, "
                      "pod-resources and plugins_registry in " +
                          kubelet.root_dir);
}

Verdict CheckNetns(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.hidden_netns) return verdict.Skip(facts.hidden_netns.why());
  for (const std::string& directory : *facts.hidden_netns) {
    verdict.Fail(directory + " is on a private mount: namespaces that the host makes later do not show here",
                 "mount it with mountPropagation: HostToContainer (rslave), as the DaemonSet does");
  }
  if (verdict.observations().empty()) verdict.Ok("the host's later mounts show here");
  return verdict;
}

Verdict CheckSelinux(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.selinux) return verdict.Skip(facts.selinux.why());
  if (!*facts.selinux) return verdict.Ok("the host has no SELinux");
  if (!facts.unreadable_mounts) return verdict.Skip(facts.unreadable_mounts.why());
  for (const auto& [path, label] : *facts.unreadable_mounts)
    verdict.Warn(std::string(path).append(": labelled ").append(label), "chcon -t container_file_t " + path);
  if (verdict.observations().empty()) verdict.Ok("the files that pods mount have a label for containers");
  return verdict;
}

Verdict CheckNetAdmins(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.net_admins) return verdict.Skip(facts.net_admins.why());
  for (const std::string& pod : *facts.net_admins) {
    verdict.Warn("pod " + pod + " has CAP_NET_ADMIN in the host's user namespace",
                 "hostUsers: false in the pod's specification, or without the capability");
  }
  if (verdict.observations().empty()) verdict.Ok("no pod with NICs has it");
  return verdict;
}

}  // namespace railhead::doctor
