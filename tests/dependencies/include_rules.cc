#include "tests/dependencies/include_rules.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace railhead::testing {
namespace fs = std::filesystem;
namespace {

using Paths = std::vector<std::string_view>;

Paths Joined(Paths paths, const Paths& others) {
  paths.insert(paths.end(), others.begin(), others.end());
  return paths;
}

Paths Node(const Paths& others) {
  return Joined(
      {"netns/", "cni/protocol/", "cni/fabric/", "cni/state/", "cni/nccl/", "deviceplugin/support/"}, others);
}

// Only the plugins use their verbs; every service may use their libraries.
Paths Service(const Paths& others) {
  return Joined({"netns/", "cni/protocol/", "cni/fabric/", "cni/state/", "cni/nccl/", "cni/attachment/",
                 "ipam/store/", "deviceplugin/support/", "deviceplugin/node/"},
                others);
}

struct Part {
  std::string_view path;
  std::vector<std::string_view> may_use;  // beside itself
};

// A file belongs to the part with the longest matching path.
const std::vector<Part>& Parts() {
  static const std::vector<Part> parts = {
      {"netns/base/", {}},
      {"netns/json/", {"netns/base/"}},
      {"netns/sys/", {"netns/base/"}},
      {"netns/ns/", {"netns/base/"}},
      {"netns/gid/", {"netns/base/"}},
      {"netns/nl/", {"netns/base/", "netns/json/", "netns/ns/", "netns/kernel.h"}},
      {"netns/packet/", {"netns/base/", "netns/ns/"}},
      {"netns/verbs/", {"netns/base/", "netns/gid/"}},
      {"netns/", {"netns/"}},
      {"cni/protocol/", {"netns/base/", "netns/json/"}},
      {"cni/fabric/", {"netns/base/", "netns/json/", "netns/nl/vf_settings.h", "cni/protocol/"}},
      {"cni/state/", {"netns/", "cni/protocol/", "cni/fabric/"}},
      {"cni/nccl/", {"netns/", "cni/protocol/", "cni/fabric/", "cni/state/"}},
      {"cni/attachment/", {"netns/", "cni/protocol/", "cni/fabric/", "cni/state/", "cni/nccl/"}},
      {"cni/plugin/", {"netns/", "cni/"}},
      {"ipam/store/", {"netns/base/", "netns/json/"}},
      {"ipam/plugin/", {"netns/base/", "netns/json/", "cni/protocol/", "cni/fabric/", "ipam/store/"}},
      {"deviceplugin/support/help/", {"netns/"}},
      {"deviceplugin/support/http/",
       {"netns/", "deviceplugin/support/service/", "deviceplugin/support/metrics/"}},
      {"deviceplugin/support/install/", {"netns/"}},
      {"deviceplugin/support/keys/", {"netns/"}},
      {"deviceplugin/support/kubernetes/", {"netns/", "deviceplugin/support/http/"}},
      {"deviceplugin/support/log/", {"netns/"}},
      {"deviceplugin/support/metrics/", {"netns/"}},
      {"deviceplugin/support/plugin_registration/", {}},
      {"deviceplugin/support/program/", {"netns/"}},
      {"deviceplugin/support/service/", {"netns/", "deviceplugin/support/metrics/"}},
      {"deviceplugin/node/inventory/", Node({})},
      {"deviceplugin/node/resources/", Node({"deviceplugin/node/inventory/"})},
      {"deviceplugin/node/health/", Node({})},
      {"deviceplugin/node/topology/", Node({"deviceplugin/node/inventory/"})},
      {"deviceplugin/node/snapshot/", Node({"deviceplugin/node/"})},
      {"deviceplugin/services/discovery/",
       Service({"deviceplugin/services/fabric_follow/", "deviceplugin/services/health/",
                "deviceplugin/services/provision/"})},
      // A fabric is valid if all who read an object of it say so.
      {"deviceplugin/services/fabric_follow/",
       Service({"deviceplugin/services/health/", "deviceplugin/services/node_index/",
                "deviceplugin/services/node_status/", "deviceplugin/services/provision/",
                "deviceplugin/services/reachability/"})},
      {"deviceplugin/services/health/", Service({})},
      {"deviceplugin/services/kubelet/", Service({})},
      {"deviceplugin/services/late_binding/", Service({"deviceplugin/services/kubelet/"})},
      {"deviceplugin/services/lldp/", Service({})},
      {"deviceplugin/services/nic_metrics/", Service({})},
      {"deviceplugin/services/node_index/", Service({})},
      {"deviceplugin/services/node_status/", Service({})},
      {"deviceplugin/services/provision/", Service({})},
      {"deviceplugin/services/reachability/", Service({})},
      {"deviceplugin/services/reconcile/", Service({})},
      {"deviceplugin/daemon/", Service({"deviceplugin/services/"})},
      // railctl prints the schema of a whole network configuration.
      {"deviceplugin/tools/",
       Service({"deviceplugin/services/", "deviceplugin/tools/migrate/", "ipam/plugin/fields_shape.h"})},
      // The plugin's own reader checks what migrate has translated. The blocks of nodes are those of
      // node_index.
      {"deviceplugin/tools/migrate/", Service({"ipam/plugin/", "deviceplugin/services/node_index/"})},
      {"bench/", {"netns/", "cni/", "ipam/", "deviceplugin/", "tests/"}},
      {"tests/", {"netns/", "cni/", "ipam/", "deviceplugin/", "bench/"}},
  };
  return parts;
}

struct Library {
  std::string_view prefix;
  std::vector<std::string_view> only_in;
};

const std::vector<Library>& Libraries() {
  static const std::vector<Library> libraries = {
      {"grpc", {"deviceplugin/", "tests/", "bench/"}},
      {"google/protobuf", {"deviceplugin/", "tests/", "bench/"}},
      {"ares.h", {"deviceplugin/support/http/"}},
      {"boost/", {"deviceplugin/support/http/"}},
      {"openssl/", {"deviceplugin/support/http/", "deviceplugin/support/keys/"}},
      {"yaml-cpp/", {"deviceplugin/support/kubernetes/"}},
      {"toml++/", {"deviceplugin/tools/doctor/"}},
      {"prometheus/", {"deviceplugin/", "tests/"}},
      {"hwloc", {"deviceplugin/", "tests/"}},
      {"CLI/", {"deviceplugin/", "tests/", "bench/"}},
      {"spdlog/", {"deviceplugin/support/log/"}},
      {"netlink/", {"netns/"}},
      {"infiniband/", {"netns/verbs/", "tests/guest/", "tests/support/"}},
      {"lmdb.h", {"ipam/", "tests/"}},
      {"nlohmann/", {"netns/json/", "cni/", "ipam/", "deviceplugin/", "tests/", "bench/"}},
      {"gtest/", {"tests/"}},
      {"gmock/", {"tests/"}},
      {"rapidcheck", {"tests/support/"}},
  };
  return libraries;
}

bool IsHeader(std::string_view file) {
  return file.ends_with(".h");
}

bool StartsWithAny(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

const Part* PartOf(std::string_view file) {
  const Part* best = nullptr;
  for (const Part& part : Parts()) {
    if (file.starts_with(part.path) && (best == nullptr || part.path.size() > best->path.size()))
      best = &part;
  }
  return best;
}

std::optional<std::string> CheckOwn(const Part& part, const std::string& included) {
  const Part* other = PartOf(included);
  if (other == nullptr) {
    if (included.ends_with(".pb.h")) return std::nullopt;  // generated; its library is checked above
    return "\"" + included + "\" is not named from the repository's root";
  }
  if (other == &part) return std::nullopt;
  if (StartsWithAny(included, part.may_use)) return std::nullopt;
  return std::string(part.path) + " must not use " + included;
}

std::optional<std::string> CheckLibrary(const std::string& file, const std::string& included) {
  for (const Library& library : Libraries()) {
    if (!included.starts_with(library.prefix)) continue;
    if (!StartsWithAny(file, library.only_in)) return "<" + included + "> is not for this part";
    // Every file that includes a header also gets the header's includes.
    if (library.prefix == "netlink/" && IsHeader(file) && !file.starts_with("netns/nl/")) {
      return "<" + included + "> in a header outside netns/nl/";
    }
  }
  return std::nullopt;
}

// "cni", "deviceplugin/node".
std::string GroupOf(std::string_view file) {
  const std::size_t top = file.find('/');
  const std::size_t below = file.substr(0, top) == "deviceplugin" ? file.find('/', top + 1) : top;
  return std::string(file.substr(0, below));
}

// "" for a file outside the services.
std::string ServiceOf(std::string_view file) {
  constexpr std::string_view kServices = "deviceplugin/services/";
  if (!file.starts_with(kServices)) return {};
  file.remove_prefix(kServices.size());
  return std::string(file.substr(0, file.find('/')));
}

// An include of another group or service is an arrow.
void Count(const std::string& file, const std::string& line, IncludeCheck* check) {
  constexpr std::string_view kStart = "#include \"";
  if (!line.starts_with(kStart) || file.starts_with("tests/")) return;
  const std::string included = line.substr(kStart.size(), line.find('"', kStart.size()) - kStart.size());
  if (PartOf(included) == nullptr || included.starts_with("tests/")) return;
  if (GroupOf(file) != GroupOf(included)) ++check->arrows[{GroupOf(file), GroupOf(included)}];
  const std::string service = ServiceOf(file);
  const std::string other = ServiceOf(included);
  if (!service.empty() && !other.empty() && service != other) check->service_arrows.insert({service, other});
}

}  // namespace

std::optional<std::string> IncludeViolation(const std::string& file, const std::string& line) {
  std::string_view rest = line;
  const auto skip = [&rest] { rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size())); };
  skip();
  if (!rest.starts_with('#')) return std::nullopt;
  rest.remove_prefix(1);
  skip();
  if (!rest.starts_with("include")) return std::nullopt;
  rest.remove_prefix(std::string_view("include").size());
  skip();
  if (rest.empty() || (rest[0] != '"' && rest[0] != '<')) return "an include by macro cannot be checked";
  const bool own = rest[0] == '"';
  rest.remove_prefix(1);
  const std::string included(rest.substr(0, rest.find_first_of("\">")));
  const Part* part = PartOf(file);
  if (part == nullptr) return "is in no known part";
  if (auto wrong = CheckLibrary(file, included)) return wrong;
  // Without this, our own headers included by <> would get past the rules.
  const bool ours = own || PartOf(included) != nullptr;
  return ours ? CheckOwn(*part, included) : std::nullopt;
}

IncludeCheck CheckIncludes(const std::string& root) {
  IncludeCheck check;
  for (const char* top : {"netns", "cni", "ipam", "deviceplugin", "bench", "tests"}) {
    std::error_code none;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / top, none)) {
      const std::string extension = entry.path().extension();
      if (!entry.is_regular_file() || (extension != ".h" && extension != ".cc")) continue;
      ++check.files;
      const std::string file = entry.path().lexically_relative(root);
      std::ifstream stream(entry.path());
      std::string line;
      for (int number = 1; std::getline(stream, line); ++number) {
        if (line.find("include") != std::string::npos && line.find('#') != std::string::npos)
          ++check.includes;
        Count(file, line, &check);
        const auto wrong = IncludeViolation(file, line);
        if (wrong) check.violations.push_back(file + ":" + std::to_string(number) + ": " + *wrong);
      }
    }
  }
  std::sort(check.violations.begin(), check.violations.end());
  return check;
}

}  // namespace railhead::testing
