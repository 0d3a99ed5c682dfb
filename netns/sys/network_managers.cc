#include "netns/sys/network_managers.h"

#include <array>
#include <string_view>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

struct Manager {
  const char* name;
  const char* directory;  // of a file for each interface
  bool (*manages)(const std::string& state);
};

// The value of KEY=VALUE in a section, "" before the first one. "": it is not there.
std::string ValueOf(const std::string& text, std::string_view section, std::string_view key) {
  std::string current;
  for (const std::string& line : Split(text, '\n')) {
    if (line.starts_with('[') && line.ends_with(']')) current = line.substr(1, line.size() - 2);
    const auto equals = line.find('=');
    if (current != section || equals == std::string::npos || line.substr(0, equals) != key) continue;
    return line.substr(equals + 1);
  }
  return {};
}

// In "pending" and "initialized" it waits for udev. It does not touch a device in "unmanaged" and "linger".
bool NetworkdManages(const std::string& state) {
  const std::string value = ValueOf(state, "", "ADMIN_STATE");
  return value == "configuring" || value == "configured" || value == "failed";
}

// It has a file for each device that it knows. Only "true" is a claim.
bool NetworkManagerManages(const std::string& state) {
  return ValueOf(state, "device", "managed") == "true";
}

constexpr std::array kManagers = {
    Manager{"NetworkManager", "/run/NetworkManager/devices", NetworkManagerManages},
    Manager{"systemd-networkd", "/run/systemd/netif/links", NetworkdManages}};

}  // namespace

std::vector<std::string> ManagersOf(const Root& root, int link) {
  std::vector<std::string> names;
  for (const Manager& manager : kManagers) {
    const auto state = ReadFile(root.Path(manager.directory) + "/" + std::to_string(link));
    if (state && *state && manager.manages(**state)) names.emplace_back(manager.name);
  }
  return names;
}

std::vector<std::string> ManagersOnHost(const Root& root) {
  std::vector<std::string> names;
  for (const Manager& manager : kManagers) {
    if (Exists(root.Path(manager.directory))) names.emplace_back(manager.name);
  }
  return names;
}

}  // namespace railhead
