#include "tests/dependencies/include_rules.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace railhead::testing {
namespace fs = std::filesystem;
namespace {

struct Part {
  std::string_view path;
  std::vector<std::string_view> may_use;  // beside itself
};

// The longest path that fits a file is its part.
const std::vector<Part>& Parts() {
  static const std::vector<Part> parts = {
      {"netns/base/", {}},
      {"netns/sys/", {"netns/base/"}},
      {"netns/nl/", {"netns/base/", "netns/ns/", "netns/kernel.h", "netns/gid/"}},
      {"netns/ns/", {"netns/base/"}},
      {"netns/gid/", {"netns/base/", "netns/ns/"}},
      {"netns/packet/", {"netns/base/", "netns/ns/"}},
      {"netns/verbs/", {"netns/base/", "netns/gid/"}},
      {"netns/", {}},
      {"cni/protocol/", {"netns/base/"}},
      {"cni/fabric/", {"netns/base/", "cni/protocol/"}},
      {"cni/state/", {"netns/", "cni/protocol/", "cni/fabric/"}},
      {"cni/nccl/", {"netns/", "cni/protocol/", "cni/state/"}},
      {"cni/plugin/", {"netns/", "cni/protocol/", "cni/fabric/", "cni/state/", "cni/nccl/"}},
      {"ipam/", {"netns/", "cni/protocol/", "cni/fabric/"}},
      {"deviceplugin/", {"netns/", "cni/", "ipam/"}},
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
      {"boost/", {"deviceplugin/services/address_leasing/"}},
      {"openssl/", {"deviceplugin/support/keys/", "deviceplugin/services/address_leasing/"}},
      {"yaml-cpp/", {"deviceplugin/services/address_leasing/"}},
      {"prometheus/", {"deviceplugin/", "tests/"}},
      {"hwloc", {"deviceplugin/", "tests/"}},
      {"CLI/", {"deviceplugin/", "tests/", "bench/"}},
      {"spdlog/", {"deviceplugin/", "tests/"}},
      {"netlink/", {"netns/"}},
      {"infiniband/", {"netns/verbs/", "tests/netns/"}},
      {"lmdb.h", {"ipam/", "tests/"}},
      {"nlohmann/", {"cni/", "ipam/", "deviceplugin/", "tests/", "bench/"}},
      {"gtest/", {"tests/"}},
      {"gmock/", {"tests/"}},
      {"benchmark/", {"bench/"}},
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
  // Within netns/ the top (kernel.h, linux_kernel.*) may use all below it.
  if (other == &part || (part.path == "netns/" && included.starts_with("netns/"))) return std::nullopt;
  if (StartsWithAny(included, part.may_use)) return std::nullopt;
  return std::string(part.path) + " must not use " + included;
}

std::optional<std::string> CheckLibrary(const std::string& file, const std::string& included) {
  for (const Library& library : Libraries()) {
    if (!included.starts_with(library.prefix)) continue;
    if (!StartsWithAny(file, library.only_in)) return "<" + included + "> is not for this part";
    // What a header shows, everyone who includes it gets.
    if (library.prefix == "netlink/" && IsHeader(file) && !file.starts_with("netns/nl/")) {
      return "<" + included + "> in a header outside netns/nl/";
    }
  }
  return std::nullopt;
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
  // Our own headers by <> would get past the rules.
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
        const auto wrong = IncludeViolation(file, line);
        if (wrong) check.violations.push_back(file + ":" + std::to_string(number) + ": " + *wrong);
      }
    }
  }
  std::sort(check.violations.begin(), check.violations.end());
  return check;
}

}  // namespace railhead::testing
