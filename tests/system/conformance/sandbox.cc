#include "tests/system/conformance/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/kernel.h"
#include "netns/nl/netlink_route.h"

namespace railhead::conformance {
namespace {

Result<void> Mount(const char* type, const char* where) {
  RH_TRY(MakeDirectories(where));
  if (::mount(type, where, type, 0, nullptr) != 0) {
    return FailSys(errno, std::string("mounting a ") + type + " on " + where);
  }
  return {};
}

// The kernel adds these addresses and routes by itself, some time after a link came up.
bool IsKernels(const IpAddress& address) {
  return address.IsV6() && (address.IsLinkLocal() || address.IsMulticast());
}

std::string LineOf(const Link& link) {
  std::string line = "link " + link.name + " " + link.kind + (link.up ? " up" : " down");
  // A bridge takes MAC and MTU from its ports.
  if (link.kind != "bridge") line += " " + link.mac.ToString() + " mtu " + std::to_string(link.mtu);
  if (!link.alias.empty()) line += " alias " + link.alias;
  for (const auto& name : link.alt_names) line += " altname " + name;
  return line;
}

// Names a route's link, since the link's index changes when it moves.
std::string LineOf(const Route& route, const std::vector<Link>& links) {
  std::string dev = std::to_string(route.link);
  for (const auto& link : links) {
    if (link.index == route.link) dev = link.name;
  }
  return "route " + route.destination.ToString() +
         (route.gateway ? " via " + route.gateway->ToString() : std::string()) + " dev " + dev + " table " +
         std::to_string(route.table);
}

Result<void> AddRoutes(RouteApi& api, int family, const std::vector<Link>& links,
                       std::vector<std::string>& lines) {
  for (const auto& route : RH_TRY(api.ListRoutes(family, 0))) {
    if (route.table == kTableLocal || IsKernels(route.destination.address)) continue;
    lines.push_back(LineOf(route, links));
  }
  for (const auto& rule : RH_TRY(api.ListRules(family))) {
    lines.push_back("rule " + std::to_string(family) + " " + rule.ToString());
  }
  return {};
}

std::vector<std::string> Processes() {
  auto names = ListDirectory("/proc");
  std::vector<std::string> processes;
  if (!names || !*names) return processes;
  for (const auto& name : **names) {
    if (ParseInt(name)) processes.push_back(name);
  }
  return processes;
}

std::string NameOfProcess(const std::string& pid) {
  const auto name = ReadAttribute("/proc/" + pid + "/comm");
  return pid + " " + (name && *name ? **name : std::string("?"));
}

}  // namespace

Result<void> EnterOwnHost() {
  if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) {
    return Fail(Wrap(SysError(errno, "making namespaces"), "this needs root"));
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return FailSys(errno, "making the mounts private");
  }
  RH_TRY(Mount("tmpfs", "/run"));
  RH_TRY(Mount("tmpfs", "/var/lib/cni"));
  RH_TRY(Mount("sysfs", "/sys"));
  const NetNs host = RH_TRY(NetNs::Current());
  const auto route = RH_TRY(OpenNetlinkRoute(host));
  LinkChange up;
  up.up = true;
  return route->ChangeLink(1, up);
}

Result<Sandbox> Sandbox::Make(const std::string& name) {
  RH_TRY(MakeDirectories(kSandboxDirectory));
  std::string path = std::string(kSandboxDirectory) + "/" + name;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!file.valid()) return FailSys(errno, "making " + path);
  int failed = 0;
  unsigned long long inode = 0;
  // The namespace belongs to a new thread; the calling thread stays in its own.
  std::thread([&] {
    struct stat status {};
    if (::unshare(CLONE_NEWNET) != 0 ||
        ::mount("/proc/thread-self/ns/net", path.c_str(), "none", MS_BIND, nullptr) != 0 ||
        ::stat(path.c_str(), &status) != 0) {
      failed = errno;
    }
    inode = status.st_ino;
  }).join();
  if (failed != 0) return FailSys(failed, "making a network namespace at " + path);
  return Sandbox(std::move(path), inode);
}

Sandbox::Sandbox(Sandbox&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      inode_(other.inode_),
      alive_(std::exchange(other.alive_, false)) {}

Sandbox::~Sandbox() {
  if (path_.empty()) return;
  if (alive_) (void)::umount2(path_.c_str(), MNT_DETACH);
  (void)::unlink(path_.c_str());
}

void Sandbox::Destroy(bool keep_file) {
  if (alive_) (void)::umount2(path_.c_str(), MNT_DETACH);
  alive_ = false;
  if (!keep_file) (void)::unlink(path_.c_str());
}

Result<std::vector<std::string>> Snapshot(const NetNs& ns) {
  const auto api = RH_TRY(OpenNetlinkRoute(ns));
  const auto links = RH_TRY(api->ListLinks());
  std::vector<std::string> lines;
  for (const auto& link : links) {
    lines.push_back(LineOf(link));
    for (const auto& address : RH_TRY(api->ListAddresses(link.index))) {
      const IpPrefix& prefix = address.prefix;
      if (!IsKernels(prefix.address)) lines.push_back("address " + prefix.ToString() + " of " + link.name);
    }
  }
  RH_TRY(AddRoutes(*api, AF_INET, links, lines));
  RH_TRY(AddRoutes(*api, AF_INET6, links, lines));
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string Difference(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  std::vector<std::string> changes;
  const auto missing = [](const std::vector<std::string>& from, const std::string& line) {
    return std::find(from.begin(), from.end(), line) == from.end();
  };
  for (const auto& line : before) {
    if (missing(after, line)) changes.push_back("- " + line);
  }
  for (const auto& line : after) {
    if (missing(before, line)) changes.push_back("+ " + line);
  }
  return Join(changes, "; ");
}

std::vector<std::string> LivingChildren() {
  std::vector<std::string> children;
  const std::string self = std::to_string(::getpid());
  for (const auto& pid : Processes()) {
    const auto status = ReadFile("/proc/" + pid + "/stat");
    if (!status || !*status) continue;
    // "PID (NAME) STATE PPID ...": the name may hold anything.
    const auto end = (*status)->rfind(')');
    if (end == std::string::npos) continue;
    const auto fields = Split((*status)->substr(end + 1), ' ');
    if (fields.size() < 3 || fields[2] != self) continue;
    if (fields[1] == "Z") {
      (void)::waitpid(static_cast<pid_t>(*ParseInt(pid)), nullptr, WNOHANG);
    } else {
      children.push_back(NameOfProcess(pid));
    }
  }
  return children;
}

std::vector<std::string> UsersOfNamespace(unsigned long long inode) {
  const std::string wanted = "net:[" + std::to_string(inode) + "]";
  const std::string self = std::to_string(::getpid());
  std::vector<std::string> users;
  for (const auto& pid : Processes()) {
    if (pid == self) continue;
    std::vector<std::string> links = {"/proc/" + pid + "/ns/net"};
    if (const auto fds = ListDirectory("/proc/" + pid + "/fd"); fds && *fds) {
      for (const auto& fd : **fds) links.push_back("/proc/" + pid + "/fd/" + fd);
    }
    const bool uses = std::any_of(links.begin(), links.end(), [&](const std::string& link) {
      const auto target = ReadLink(link);
      return target && *target == wanted;
    });
    if (uses) users.push_back(NameOfProcess(pid));
  }
  return users;
}

}  // namespace railhead::conformance
