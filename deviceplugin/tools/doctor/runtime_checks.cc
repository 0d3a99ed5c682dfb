// The container runtime, and who else hands out the node's devices.
#include <algorithm>
#include <array>
#include <set>

#include "deviceplugin/tools/doctor/checks.h"
#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

// Of its configuration: 3 came with containerd 2.0, and with it enable_cdi as the default.
constexpr int kVersionWithCdi = 3;

bool UsesCdi(const NodeFacts& facts) {
  if (!facts.fabric) return true;
  return std::any_of(facts.fabric->pools.begin(), facts.fabric->pools.end(), [](const Pool& pool) {
    return pool.handoff == HandoffPolicy::kRequired && pool.delivery == Delivery::kCdi;
  });
}

bool ReadsOurDirectory(const std::vector<std::string>& directories) {
  return std::any_of(directories.begin(), directories.end(), [](const std::string& directory) {
    return directory == "/run/cdi" || directory == "/var/run/cdi" || directory == "/run/cdi/" ||
           directory == "/var/run/cdi/";
  });
}

Verdict JudgeContainerd(const CdiSwitch& cdi) {
  const std::string fix =
      "enable_cdi = true in section [plugins.\"io.containerd.grpc.v1.cri\"] of containerd's config.toml "
      "(version 3: "
      "[plugins.'io.containerd.cri.v1.runtime']), then restart containerd; or \"delivery\": \"mount\" in the "
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

// What names a device plugin for the same kind of devices; sockets are called after resources.
bool LooksLikeOurs(const std::string& socket) {
  constexpr std::array<std::string_view, 8> kWords = {"sriov", "rdma",     "roce",       "hca",
                                                      "mlnx",  "mellanox", "infiniband", "mlx5"};
  const std::string lower = ToLower(socket);
  return std::any_of(kWords.begin(), kWords.end(),
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

// Those that move a device into a pod, and those that put another one on top.
bool Takes(const std::string& type) {
  return type == "host-device" || type == "sriov" || type == "ib-sriov" || type == "accelerated-bridge";
}
bool StacksOn(const std::string& type) {
  return type == "macvlan" || type == "ipvlan" || type == "vlan" || type == "bridge";
}

void JudgeCniUse(const CniUse& use, const std::set<std::string>& ours, Verdict* verdict) {
  const auto device = std::find_if(use.devices.begin(), use.devices.end(),
                                   [&](const std::string& name) { return ours.contains(name); });
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
      verdict.Warn("another device plugin: " + socket,
                   "make sure that its selectors leave out the rails' PFs, or remove it (docs/migration.md)");
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

}  // namespace railhead::doctor
