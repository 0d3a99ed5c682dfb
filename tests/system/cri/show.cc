// show: the program of the test image. It prints, as one JSON object, what a container has of Railhead, as
// seen from inside the container. It is static, since the image has no other file.
//
//   `env`: variables PCIDEVICE_* and NCCL_*.
//   `devices`: nodes in /dev/infiniband and /dev/vfio: numbers, and whether open(2) for reading and writing
//     succeeds, which the device cgroup decides.
//   `ncclConf`: the lines of /etc/nccl.conf; null without the file.
//   `files`: NCCL's and RCCL's file and the topology file, by path: the text (null without the file), and
//     whether it is writable.
//   `interfaces`: with their IPv4 addresses.
//   `hcas`: the RDMA devices that NCCL_IB_HCA of nccl.conf names. Each has its netdev, and the GID and type
//     at NCCL_IB_GID_INDEX, from the container's own /sys.
//
// Exit status: 0, or 1 when something could not be read (message on stderr). With --stay it prints and then
// waits for SIGTERM.
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kNcclConf = "/etc/nccl.conf";
constexpr const char* kRcclConf = "/etc/rccl.conf";
constexpr const char* kNcclTopology = "/var/run/nvidia-topologyd/virtualTopology.xml";

Json Variables(char** environment) {
  Json env = Json::object();
  for (char** entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("PCIDEVICE_") && !text.starts_with("NCCL_")) continue;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      env[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  }
  return env;
}

Json Node(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {{"path", path}, {"error", std::strerror(errno)}};
  Json node{{"path", path}, {"character", S_ISCHR(status.st_mode)}};
  node["number"] = std::to_string(major(status.st_rdev)) + ":" + std::to_string(minor(status.st_rdev));
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  node["opens"] = fd.valid();
  if (!fd.valid()) node["error"] = std::strerror(errno);
  return node;
}

Result<Json> Nodes() {
  Json nodes = Json::array();
  for (const std::string directory : {"/dev/infiniband", "/dev/vfio"}) {
    const auto names = RH_TRY(ListDirectory(directory));
    if (!names) continue;
    for (const std::string& name : *names) nodes.push_back(Node(Join({directory, name}, "/")));
  }
  return nodes;
}

Result<Json> Interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return FailSys(errno, "listing the interfaces");
  Json interfaces = Json::object();
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    Json& addresses = interfaces[entry->ifa_name];
    if (addresses.is_null()) addresses = Json::array();
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, entry->ifa_addr, sizeof(address));
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
    addresses.push_back(text);
  }
  ::freeifaddrs(list);
  return interfaces;
}

// The file of an index without a GID cannot be read; the output shows that too.
Json Attribute(const std::string& path) {
  const auto text = ReadAttribute(path);
  if (!text) return "error: " + Describe(text.error());
  return *text ? Json(**text) : Json(nullptr);
}

// A line "NAME=VALUE" of nccl.conf; empty without it.
std::string Setting(const std::vector<std::string>& lines, const std::string& name) {
  for (const std::string& line : lines) {
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  }
  return {};
}

Json Hcas(const std::vector<std::string>& lines) {
  Json hcas = Json::array();
  const std::string names = Setting(lines, "NCCL_IB_HCA");
  const std::string index = Setting(lines, "NCCL_IB_GID_INDEX");
  if (names.size() < 2 || names[0] != '=') return hcas;  // an exact list begins with another '='
  for (const std::string& name : Split(names.substr(1), ',')) {
    const std::string port = "/sys/class/infiniband/" + name + "/ports/1";
    Json hca{{"name", name}, {"gidIndex", index}};
    hca["netdev"] = Attribute(Join({port, "gid_attrs/ndevs", index}, "/"));
    hca["gid"] = Attribute(Join({port, "gids", index}, "/"));
    hca["type"] = Attribute(Join({port, "gid_attrs/types", index}, "/"));
    hcas.push_back(std::move(hca));
  }
  return hcas;
}

Result<Json> File(const std::string& path) {
  const auto text = RH_TRY(ReadFile(path));
  const UniqueFd writable(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return Json{{"text", text ? Json(*text) : Json(nullptr)}, {"writable", writable.valid()}};
}

Result<Json> Everything(char** environment) {
  Json all{{"env", Variables(environment)}};
  all["devices"] = RH_TRY(Nodes());
  const auto conf = RH_TRY(ReadFile(kNcclConf));
  std::vector<std::string> lines = conf ? Split(*conf, '\n') : std::vector<std::string>();
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  all["ncclConf"] = conf ? Json(lines) : Json(nullptr);
  for (const char* path : {kNcclConf, kRcclConf, kNcclTopology}) all["files"][path] = RH_TRY(File(path));
  all["interfaces"] = RH_TRY(Interfaces());
  all["hcas"] = Hcas(lines);
  return all;
}

void WaitForEnd() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  while (sigwaitinfo(&signals, nullptr) < 0 && errno == EINTR) {
  }
}

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv, char** environment) {
  const auto all = railhead::testing::Everything(environment);
  if (!all) {
    (void)std::fprintf(stderr, "show: %s\n", railhead::Describe(all.error()).c_str());
    return 1;
  }
  // Prints the object whatever bytes a variable holds.
  using Json = nlohmann::ordered_json;
  (void)std::printf("%s\n", all->dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  (void)std::fflush(stdout);
  if (argc > 1 && std::string_view(argv[1]) == "--stay") railhead::testing::WaitForEnd();
  return 0;
}
