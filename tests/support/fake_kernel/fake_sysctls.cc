// sysctls of a namespace and of its links. A link that enters a namespace gets its "default" values.
#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "netns/base/text.h"
#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

struct Known {
  const char* key;    // "ipv4/conf/arp_ignore": of links; "net/core/somaxconn": of the namespace
  const char* value;  // of a new kernel; a number: only numbers are taken
};

constexpr std::array kKnown = {
    Known{"ipv4/conf/accept_local", "0"},
    Known{"ipv4/conf/accept_redirects", "1"},
    Known{"ipv4/conf/accept_source_route", "0"},
    Known{"ipv4/conf/arp_accept", "0"},
    Known{"ipv4/conf/arp_announce", "0"},
    Known{"ipv4/conf/arp_filter", "0"},
    Known{"ipv4/conf/arp_ignore", "0"},
    Known{"ipv4/conf/arp_notify", "0"},
    Known{"ipv4/conf/disable_policy", "0"},
    Known{"ipv4/conf/disable_xfrm", "0"},
    Known{"ipv4/conf/forwarding", "0"},
    Known{"ipv4/conf/log_martians", "0"},
    Known{"ipv4/conf/promote_secondaries", "0"},
    Known{"ipv4/conf/proxy_arp", "0"},
    Known{"ipv4/conf/route_localnet", "0"},
    Known{"ipv4/conf/rp_filter", "0"},
    Known{"ipv4/conf/secure_redirects", "1"},
    Known{"ipv4/conf/send_redirects", "1"},
    Known{"ipv4/conf/src_valid_mark", "0"},
    Known{"ipv4/neigh/base_reachable_time_ms", "30000"},
    Known{"ipv4/neigh/gc_stale_time", "60"},
    Known{"ipv4/neigh/mcast_solicit", "3"},
    Known{"ipv4/neigh/retrans_time_ms", "1000"},
    Known{"ipv4/neigh/ucast_solicit", "3"},
    Known{"ipv6/conf/accept_dad", "1"},
    Known{"ipv6/conf/accept_ra", "1"},
    Known{"ipv6/conf/accept_redirects", "1"},
    Known{"ipv6/conf/addr_gen_mode", "0"},
    Known{"ipv6/conf/autoconf", "1"},
    Known{"ipv6/conf/dad_transmits", "1"},
    Known{"ipv6/conf/disable_ipv6", "0"},
    Known{"ipv6/conf/forwarding", "0"},
    Known{"ipv6/conf/keep_addr_on_down", "0"},
    Known{"ipv6/conf/ndisc_notify", "0"},
    Known{"ipv6/conf/optimistic_dad", "0"},
    Known{"ipv6/conf/use_optimistic", "0"},
    Known{"ipv6/conf/use_tempaddr", "0"},
    Known{"ipv6/neigh/base_reachable_time_ms", "30000"},
    Known{"ipv6/neigh/mcast_solicit", "3"},
    Known{"ipv6/neigh/retrans_time_ms", "1000"},
    Known{"net/core/somaxconn", "4096"},
    Known{"net/ipv4/icmp_echo_ignore_all", "0"},
    Known{"net/ipv4/icmp_echo_ignore_broadcasts", "1"},
    Known{"net/ipv4/ip_local_port_range", "32768\t60999"},
    Known{"net/ipv4/ip_nonlocal_bind", "0"},
    Known{"net/ipv4/ip_unprivileged_port_start", "1024"},
    Known{"net/ipv4/ping_group_range", "1\t0"},
    Known{"net/ipv4/tcp_congestion_control", "cubic"},
    Known{"net/ipv4/tcp_keepalive_time", "7200"},
    Known{"net/ipv4/tcp_rmem", "4096\t131072\t6291456"},
    Known{"net/ipv4/tcp_syncookies", "1"},
    Known{"net/ipv4/tcp_wmem", "4096\t16384\t4194304"},
};

struct NetlinkConf {
  const char* key;
  Ipv4Conf id;
};
constexpr std::array kNetlinkConfs = {
    NetlinkConf{"ipv4/conf/forwarding", Ipv4Conf::kForwarding},
    NetlinkConf{"ipv4/conf/rp_filter", Ipv4Conf::kRpFilter},
    NetlinkConf{"ipv4/conf/arp_filter", Ipv4Conf::kArpFilter},
    NetlinkConf{"ipv4/conf/arp_announce", Ipv4Conf::kArpAnnounce},
    NetlinkConf{"ipv4/conf/arp_ignore", Ipv4Conf::kArpIgnore},
    NetlinkConf{"ipv4/conf/arp_notify", Ipv4Conf::kArpNotify},
};

const NetlinkConf* FindNetlinkConf(const std::string& key) {
  for (const NetlinkConf& conf : kNetlinkConfs) {
    if (key == conf.key) return &conf;
  }
  return nullptr;
}

std::optional<std::string> FirstValue(const std::string& key) {
  for (const Known& known : kKnown) {
    if (key == known.key) return known.value;
  }
  return std::nullopt;
}

// "net/ipv4/conf/eth0/arp_ignore": "ipv4/conf/arp_ignore" of "eth0".
struct OfLink {
  std::string key;
  std::string scope;  // a link, "all" or "default"
};
std::optional<OfLink> ParseOfLink(const std::string& path) {
  const auto parts = Split(path, '/');
  if (parts.size() != 5 || parts[0] != "net" || (parts[2] != "conf" && parts[2] != "neigh")) {
    return std::nullopt;
  }
  return OfLink{parts[1] + "/" + parts[2] + "/" + parts[4], parts[3]};
}

std::string PathOf(const std::string& key, const std::string& scope) {
  const auto slash = key.rfind('/');
  return "net/" + key.substr(0, slash) + "/" + scope + key.substr(slash);
}

std::string TextOf(std::string ns, const std::string& path, const std::string& value) {
  return ns.append(" sysctl ").append(path).append("=").append(value);
}

// LinuxKernel refuses other paths before it reads anything.
bool IsOfNamespace(const std::string& path) {
  return path.rfind("net/", 0) == 0 && path.find("..") == std::string::npos;
}

std::string ValueOfLink(const FakeNetdev& netdev, const std::string& key, const std::string& first) {
  if (key == "ipv6/conf/addr_gen_mode") {
    return std::to_string(static_cast<int>(netdev.link.addr_gen_mode.value_or(AddrGenMode::kEui64)));
  }
  if (const NetlinkConf* conf = FindNetlinkConf(key); conf != nullptr) {
    const auto set = netdev.ipv4.find(conf->id);
    return set == netdev.ipv4.end() ? first : std::to_string(set->second);
  }
  const auto set = netdev.sysctls.find(key);
  return set == netdev.sysctls.end() ? first : set->second;
}

// Those that were ever set, of the link or of its namespace's "default": no other differs. The mode is shown
// with the link.
std::set<std::string> KeysSet(const FakeNamespace& space, const FakeNetdev& netdev) {
  std::set<std::string> keys;
  for (const auto& [key, value] : netdev.sysctls) keys.insert(key);
  for (const NetlinkConf& conf : kNetlinkConfs) {
    if (netdev.ipv4.contains(conf.id)) keys.insert(conf.key);
  }
  for (const auto& [path, value] : space.sysctls) {
    const auto of_link = ParseOfLink(path);
    if (of_link && of_link->scope == "default") keys.insert(of_link->key);
  }
  keys.erase("ipv6/conf/addr_gen_mode");
  return keys;
}

}  // namespace

bool FakeState::HasIpv6(const FakeNetdev& netdev) {
  return ValueOfLink(netdev, "ipv6/conf/disable_ipv6", "0") == "0";
}

std::optional<std::string> FakeState::ReadSysctl(const std::string& ns, const std::string& path) {
  const FakeNamespace* space = Namespace(ns);
  if (space == nullptr) return std::nullopt;
  const auto of_link = ParseOfLink(path);
  const auto first = FirstValue(of_link ? of_link->key : path);
  const bool of_namespace = !of_link || of_link->scope == "all" || of_link->scope == "default";
  if (of_namespace) {
    const auto set = space->sysctls.find(path);
    return set == space->sysctls.end() ? first : set->second;
  }
  // /proc/sys does not show alternative names.
  const FakeNetdev* netdev = Find(ns, of_link->scope);
  if (!first || netdev == nullptr || netdev->link.name != of_link->scope) return std::nullopt;
  return ValueOfLink(*netdev, of_link->key, *first);
}

void FakeState::SetLinkSysctl(FakeNetdev& netdev, const std::string& key, const std::string& value) {
  if (const NetlinkConf* conf = FindNetlinkConf(key); conf != nullptr) {
    netdev.ipv4[conf->id] = static_cast<int>(ParseInt(value).value_or(0));
  } else if (key == "ipv6/conf/addr_gen_mode") {
    netdev.link.addr_gen_mode = static_cast<AddrGenMode>(ParseInt(value).value_or(0));
  } else {
    netdev.sysctls[key] = value;
  }
  if (key != "ipv6/conf/disable_ipv6" || value == "0") return;
  const auto addresses = netdev.addresses;
  for (const auto& address : addresses) {
    if (address.address.IsV6()) DropAddress(netdev, address);
  }
}

int FakeState::WriteSysctl(const std::string& ns, const std::string& path, const std::string& value) {
  const auto present = ReadSysctl(ns, path);
  if (!present) return ENOENT;
  const auto of_link = ParseOfLink(path);
  const auto number = ParseInt(value);
  if (ParseInt(*present) && !number) return EINVAL;
  const bool is_mode = of_link && of_link->key == "ipv6/conf/addr_gen_mode";
  if (is_mode && (*number < 0 || *number > 3)) return EINVAL;
  const bool of_namespace = !of_link || of_link->scope == "all" || of_link->scope == "default";
  if (!of_namespace) {
    SetLinkSysctl(*Find(ns, of_link->scope), of_link->key, value);
    return 0;
  }
  std::string kept = value;
  // proc_do_intvec in kernel/sysctl.c separates the values with tabs.
  if (present->find('\t') != std::string::npos) std::replace(kept.begin(), kept.end(), ' ', '\t');
  Namespace(ns)->sysctls[path] = std::move(kept);
  // This one's "all" is a command (addrconf_disable_ipv6 in net/ipv6/addrconf.c).
  if (path == "net/ipv6/conf/all/disable_ipv6") {
    Namespace(ns)->sysctls["net/ipv6/conf/default/disable_ipv6"] = value;
    for (FakeNetdev& netdev : netdevs) {
      if (netdev.ns == ns) SetLinkSysctl(netdev, of_link->key, value);
    }
  }
  return 0;
}

void FakeState::ResetSysctls(FakeNetdev& netdev) {
  netdev.ipv4.clear();
  netdev.sysctls.clear();
  for (const auto& [path, value] : Namespace(netdev.ns)->sysctls) {
    const auto of_link = ParseOfLink(path);
    if (of_link && of_link->scope == "default") SetLinkSysctl(netdev, of_link->key, value);
  }
}

std::vector<std::string> FakeState::ChangedSysctls() {
  std::vector<std::string> changed;
  for (const FakeNamespace& ns : namespaces) {
    for (const auto& [path, value] : ns.sysctls) {
      const auto of_link = ParseOfLink(path);
      if (value == FirstValue(of_link ? of_link->key : path)) continue;
      changed.push_back(TextOf(ns.name, path, value));
    }
  }
  for (const FakeNetdev& netdev : netdevs) {
    for (const std::string& key : KeysSet(*Namespace(netdev.ns), netdev)) {
      const std::string value = ValueOfLink(netdev, key, FirstValue(key).value_or(""));
      const auto standard = ReadSysctl(netdev.ns, PathOf(key, "default"));
      if (value != standard) changed.push_back(TextOf(netdev.ns, PathOf(key, netdev.link.name), value));
    }
  }
  return changed;
}

Result<std::vector<std::optional<std::string>>> FakeKernel::ReadSysctls(
    const NetNs& ns, const std::vector<std::string>& paths) {
  const std::string what = "reading sysctls " + Join(paths, " ");
  if (const auto injected = Begin("ReadSysctls", Join(paths, " "))) return FailSys(injected.error, what);
  const auto name = NameOf(ns);
  if (!name) return FailSys(EINVAL, what);
  std::vector<std::optional<std::string>> values;
  values.reserve(paths.size());
  if (!std::all_of(paths.begin(), paths.end(), IsOfNamespace)) return FailSys(EINVAL, what);
  for (const std::string& path : paths) values.push_back(state_.ReadSysctl(*name, path));
  return values;
}

Result<void> FakeKernel::WriteSysctls(const NetNs& ns, const std::vector<Sysctl>& values) {
  std::vector<std::string> texts;
  for (const auto& [path, value] : values) {
    texts.push_back(path);
    texts.back() += "=" + value;
  }
  const std::string what = "setting sysctls " + Join(texts, " ");
  const auto injected = Begin("WriteSysctls", Join(texts, " "));
  if (injected.Refused()) return FailSys(injected.error, what);
  const auto name = NameOf(ns);
  if (!name) return Finish(EINVAL, what);
  // An unknown path fails before any value is written.
  for (const auto& [path, value] : values) {
    if (!IsOfNamespace(path)) return Finish(EINVAL, "setting sysctl " + path);
    if (!state_.ReadSysctl(*name, path)) return Finish(ENOENT, "setting sysctl " + path);
  }
  for (const auto& [path, value] : values) {
    const int error = state_.WriteSysctl(*name, path, value);
    if (error != 0) return Finish(error, "setting sysctl " + path);
    if (injected) break;  // kPartly: the first is in force
  }
  return Finish(injected ? injected.error : 0, what);
}

}  // namespace railhead::testing
