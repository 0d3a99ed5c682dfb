// One CNI call: lines NAME=VALUE as environment, an empty line, the configuration.
#include <map>

#include "cni/attachment/plugin_config.h"
#include "cni/protocol/read_request.h"
#include "netns/base/text.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

std::map<std::string, std::string> Variables(const std::string& text) {
  std::map<std::string, std::string> variables;
  for (const auto& line : Split(text, '\n')) {
    const auto equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return variables;
}

void Read(const std::string& text) {
  const auto end = text.find("\n\n");
  const auto variables = Variables(text.substr(0, end));
  const std::string config = end == std::string::npos ? std::string() : text.substr(end + 2);
  auto request = ReadEnvironment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
  if (!request) {
    Require(request.error().code != 0 && !request.error().error.message.empty(),
            "a refusal has code and message");
    return;
  }
  if (!ReadConfiguration(config, *request)) return;
  if (request->command == "VERSION") return;
  Require(IsSafeName(request->network), "an accepted network name is a file name");
  if (request->command == "GC") {
    (void)ReadValidAttachments(config);
  } else if (request->command != "STATUS") {
    Require(IsSafeName(request->container_id), "an accepted container id is a file name");
    Require(IsSafeName(request->ifname) && request->ifname.size() < 16,
            "an accepted CNI_IFNAME is one of an interface");
  }
  const auto read = attachment::ReadPluginConfig(*request);
  if (!read) return;
  Require(!read->vlan || (*read->vlan >= 0 && *read->vlan <= 4094), "an accepted VLAN is one");
  Require(!read->vlan_qos || (*read->vlan_qos >= 0 && *read->vlan_qos <= 7), "an accepted QoS is one");
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  railhead::fuzz::Read(railhead::fuzz::TextOf(data, size));
  return 0;
}
