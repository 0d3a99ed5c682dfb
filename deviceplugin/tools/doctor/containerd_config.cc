#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/tools/doctor/facts.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

constexpr const char* kCrioPath = "/etc/crio/crio.conf";
constexpr const char* kCrioDropIns = "/etc/crio/crio.conf.d";
// Distributions that bring a containerd of their own have its configuration in another place.
constexpr std::array kContainerdPaths = {"/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
                                         "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
                                         "/etc/containerd/config.toml"};
// Plugins of configuration versions 3, 2 and 1.
constexpr std::array kCriPlugins = {"io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri"};

// A file, with its imports or the files of its drop-in directory, in their order. A later one wins.
class Layers {
 public:
  explicit Layers(const Root& root) : root_(root) {}

  // A missing file is not an error. Invalid TOML is: a runtime refuses to start with it.
  Result<void> Add(const std::string& path) {
    const auto text = RH_TRY(ReadFile(root_.Path(path)));
    if (!text) return {};
    toml::parse_result parsed = toml::parse(*text);
    if (!parsed) {
      return Fail(ErrorCode::kMalformed, path + " line " +
                                             std::to_string(parsed.error().source().begin.line) + ": " +
                                             std::string(parsed.error().description()));
    }
    tables_.insert(tables_.begin(), std::move(parsed).table());
    return {};
  }

  Result<void> AddDirectory(const std::string& directory, std::string_view suffix) {
    const auto names = RH_TRY(ListDirectory(root_.Path(directory)));
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      if (name.ends_with(suffix)) RH_TRY(Add(std::string(directory).append("/").append(name)));
    }
    return {};
  }

  // "/etc/containerd/conf.d/*.toml", or a file. Relative paths count from the importing file.
  Result<void> AddImport(const std::string& from, const std::string& import) {
    const std::string path = import.starts_with("/") ? import : from.substr(0, from.rfind('/') + 1) + import;
    const auto slash = path.rfind('/');
    const auto star = path.find('*');
    if (star == std::string::npos) return Add(path);
    if (star == slash + 1) return AddDirectory(path.substr(0, slash), path.substr(star + 1));
    return {};
  }

  template <typename T>
  [[nodiscard]] std::optional<T> Value(std::initializer_list<std::string_view> keys) const {
    const toml::node* node = Find(keys);
    return node == nullptr ? std::nullopt : node->value<T>();
  }

  [[nodiscard]] std::optional<std::vector<std::string>> Strings(
      std::initializer_list<std::string_view> keys) const {
    const toml::node* node = Find(keys);
    if (node == nullptr || !node->is_array()) return std::nullopt;
    std::vector<std::string> strings;
    for (const toml::node& each : *node->as_array()) strings.push_back(each.value_or(std::string()));
    return strings;
  }

 private:
  [[nodiscard]] const toml::node* Find(std::initializer_list<std::string_view> keys) const {
    for (const toml::table& table : tables_) {
      const toml::node* node = &table;
      for (const std::string_view key : keys) {
        const toml::table* inside = node == nullptr ? nullptr : node->as_table();
        node = inside == nullptr ? nullptr : inside->get(key);
      }
      if (node != nullptr) return node;
    }
    return nullptr;
  }

  const Root& root_;
  std::vector<toml::table> tables_;  // the last one first
};

CdiSwitch OfContainerd(const Layers& layers, const std::string& path, int version) {
  CdiSwitch cdi;
  cdi.path = path;
  cdi.version = version;
  for (const char* plugin : kCriPlugins) {
    if (!cdi.enabled) cdi.enabled = layers.Value<bool>({"plugins", plugin, "enable_cdi"});
    if (!cdi.directories) cdi.directories = layers.Strings({"plugins", plugin, "cdi_spec_dirs"});
  }
  return cdi;
}

Result<CdiSwitch> ReadContainerd(const Root& root, const std::string& path) {
  Layers layers(root);
  RH_TRY(layers.Add(path));
  // Of the file itself: imports may have an older version.
  const auto version = static_cast<int>(layers.Value<std::int64_t>({"version"}).value_or(0));
  for (const std::string& import : layers.Strings({"imports"}).value_or(std::vector<std::string>{}))
    RH_TRY(layers.AddImport(path, import));
  return OfContainerd(layers, path, version);
}

Result<CdiSwitch> ReadCrio(const Root& root) {
  Layers layers(root);
  RH_TRY(layers.Add(kCrioPath));
  RH_TRY(layers.AddDirectory(kCrioDropIns, ""));
  CdiSwitch cdi;
  cdi.runtime = CdiSwitch::Runtime::kCrio;
  cdi.path = kCrioPath;
  cdi.directories = layers.Strings({"crio", "runtime", "cdi_spec_dirs"});
  return cdi;
}

}  // namespace

Fact<CdiSwitch> ReadCdiSwitch(const Root& root, const std::vector<std::string>& running) {
  const auto runs = [&](const char* name) { return Contains(running, name); };
  const auto containerd =
      std::ranges::find_if(kContainerdPaths, [&](const char* path) { return Exists(root.Path(path)); });
  const bool has_containerd = containerd != kContainerdPaths.end();
  const bool has_crio = Exists(root.Path(kCrioPath)) || Exists(root.Path(kCrioDropIns));
  if (runs("crio") || (has_crio && !runs("containerd") && !has_containerd))
    return Fact<CdiSwitch>::Of(ReadCrio(root));
  if (has_containerd) return Fact<CdiSwitch>::Of(ReadContainerd(root, *containerd));
  if (runs("containerd")) return CdiSwitch{};
  return Fact<CdiSwitch>::Unknown("neither containerd nor CRI-O runs, and neither has a configuration");
}

}  // namespace railhead::doctor
