#include "deviceplugin/tools/doctor/containerd_config.h"

#include <algorithm>
#include <array>
#include <optional>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

constexpr const char* kCrioPath = "/etc/crio/crio.conf";
constexpr const char* kCrioDropIns = "/etc/crio/crio.conf.d";
// Distributions that bring their own containerd say where with their own file.
constexpr std::array kContainerdPaths = {"/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
                                         "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
                                         "/etc/containerd/config.toml"};
// Sections of configuration versions 3, 2 and 1.
constexpr std::array kCriSections = {"plugins.io.containerd.cri.v1.runtime.",
                                     "plugins.io.containerd.grpc.v1.cri.", "plugins.cri."};

bool IsQuote(char character) {
  return character == '"' || character == '\'';
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Without the comment at its end.
std::string_view Content(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == quote) quote = 0;
    } else if (IsQuote(line[i])) {
      quote = line[i];
    } else if (line[i] == '#') {
      return Trim(line.substr(0, i));
    }
  }
  return Trim(line);
}

std::string WithoutQuotes(std::string_view key) {
  std::string plain;
  for (const char character : key) {
    if (!IsQuote(character) && character != ' ' && character != '\t') plain += character;
  }
  return plain;
}

// Files that `imports` names, or that are in CRI-O's directory, in their order; a later one wins.
void Merge(const Root& root, const std::string& path, TomlValues* values) {
  const auto text = ReadFile(root.Path(path));
  if (!text || !*text) return;
  for (auto& [key, value] : ParseToml(**text)) (*values)[key] = std::move(value);
}

void MergeDirectory(const Root& root, const std::string& directory, std::string_view suffix,
                    TomlValues* values) {
  const auto names = ListDirectory(root.Path(directory));
  if (!names || !*names) return;
  for (const std::string& name : **names) {
    if (name.ends_with(suffix)) Merge(root, std::string(directory).append("/").append(name), values);
  }
}

// "/etc/containerd/conf.d/*.toml", or a file; relative ones count from the importing file.
void MergeImport(const Root& root, const std::string& from, const std::string& import, TomlValues* values) {
  const std::string path = import.starts_with("/") ? import : from.substr(0, from.rfind('/') + 1) + import;
  const auto slash = path.rfind('/');
  const auto star = path.find('*');
  if (star == std::string::npos) {
    Merge(root, path, values);
  } else if (star == slash + 1) {
    MergeDirectory(root, path.substr(0, slash), path.substr(star + 1), values);
  }
}

std::optional<bool> Bool(const TomlValues& values, const std::string& key) {
  const auto found = values.find(key);
  if (found == values.end()) return std::nullopt;
  return found->second == "true";
}

CdiSwitch OfContainerd(const TomlValues& values, const std::string& path) {
  CdiSwitch cdi;
  cdi.path = path;
  if (const auto version = values.find("version"); version != values.end())
    cdi.version = static_cast<int>(ParseInt(version->second).value_or(0));
  for (const char* section : kCriSections) {
    if (!cdi.enabled) cdi.enabled = Bool(values, std::string(section) + "enable_cdi");
    const auto directories = values.find(std::string(section) + "cdi_spec_dirs");
    if (!cdi.directories && directories != values.end()) cdi.directories = TomlStrings(directories->second);
  }
  return cdi;
}

Fact<CdiSwitch> ReadContainerd(const Root& root, bool running) {
  for (const char* path : kContainerdPaths) {
    auto text = ReadFile(root.Path(path));
    if (!text) return Fact<CdiSwitch>::Unknown(Describe(text.error()));
    if (!*text) continue;
    TomlValues values = ParseToml(**text);
    const auto imports = values.find("imports");
    const auto files = imports == values.end() ? std::vector<std::string>{} : TomlStrings(imports->second);
    const auto version = values["version"];
    for (const std::string& file : files) MergeImport(root, path, file, &values);
    values["version"] = version;  // of the file itself: imports can have an older one
    return OfContainerd(values, path);
  }
  if (running) return CdiSwitch{};
  return Fact<CdiSwitch>::Unknown(
      "neither containerd nor CRI-O runs, and there is no configuration of theirs");
}

CdiSwitch ReadCrio(const Root& root) {
  TomlValues values;
  Merge(root, kCrioPath, &values);
  MergeDirectory(root, kCrioDropIns, "", &values);
  CdiSwitch cdi;
  cdi.runtime = CdiSwitch::Runtime::kCrio;
  cdi.path = kCrioPath;
  const auto directories = values.find("crio.runtime.cdi_spec_dirs");
  if (directories != values.end()) cdi.directories = TomlStrings(directories->second);
  return cdi;
}

}  // namespace

TomlValues ParseToml(std::string_view text) {
  TomlValues values;
  std::string section;
  std::string* open = nullptr;  // an array that goes on
  for (const std::string& raw : Split(text, '\n')) {
    const std::string_view line = Content(raw);
    if (line.empty()) continue;
    if (open != nullptr) {
      open->append(line);
      if (line.ends_with(']')) open = nullptr;
      continue;
    }
    if (line.front() == '[') {
      section =
          WithoutQuotes(line.substr(1, line.find(']') == std::string_view::npos ? 0 : line.rfind(']') - 1));
      continue;
    }
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string key = (section.empty() ? "" : section + ".") + WithoutQuotes(line.substr(0, equals));
    std::string& value = values[key];
    value = Trim(line.substr(equals + 1));
    if (value.starts_with('[') && !value.ends_with(']')) open = &value;
  }
  return values;
}

std::vector<std::string> TomlStrings(std::string_view value) {
  std::vector<std::string> strings;
  for (auto start = value.find_first_of("\"'"); start != std::string_view::npos;
       start = value.find_first_of("\"'", start)) {
    const auto end = value.find(value[start], start + 1);
    if (end == std::string_view::npos) break;
    strings.emplace_back(value.substr(start + 1, end - start - 1));
    start = end + 1;
  }
  return strings;
}

Fact<CdiSwitch> ReadCdiSwitch(const Root& root, const std::vector<std::string>& running) {
  const auto runs = [&](const char* name) {
    return std::find(running.begin(), running.end(), name) != running.end();
  };
  const bool has_crio = Exists(root.Path(kCrioPath)) || Exists(root.Path(kCrioDropIns));
  const bool has_containerd = std::any_of(kContainerdPaths.begin(), kContainerdPaths.end(),
                                          [&](const char* path) { return Exists(root.Path(path)); });
  if (runs("crio") || (has_crio && !runs("containerd") && !has_containerd)) return ReadCrio(root);
  return ReadContainerd(root, runs("containerd"));
}

}  // namespace railhead::doctor
