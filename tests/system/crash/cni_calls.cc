#include "tests/system/crash/cni_calls.h"

#include "netns/json/json_reader.h"

namespace railhead::crash {

Result<TraceResult> CniCalls::Call(const std::string& command, const Pod& pod, const Tracing& tracing) const {
  return CallWith(plugin_.config, command, pod, tracing);
}

Result<TraceResult> CniCalls::CallWith(const std::string& config, const std::string& command, const Pod& pod,
                                       const Tracing& tracing) const {
  Command call;
  call.arguments = {plugin_.directory + "/" + plugin_.type};
  call.environment = {"CNI_COMMAND=" + command,        "CNI_CONTAINERID=" + pod.id,
                      "CNI_NETNS=" + pod.netns,        "CNI_IFNAME=" + plugin_.ifname,
                      "CNI_PATH=" + plugin_.directory, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  if (!plugin_.root.empty()) call.environment.push_back("RAILHEAD_ROOT=" + plugin_.root);
  if (!pod.arguments.empty()) call.environment.push_back("CNI_ARGS=" + pod.arguments);
  call.input = config;
  return WithContext(Trace(call, tracing), command + " of " + pod.id);
}

Result<std::vector<std::string>> AddressesOf(const std::string& output) {
  const auto document = RH_TRY(JsonDocument::Parse(output, "result"));
  JsonReader reader = document.Root();
  std::vector<std::string> addresses;
  for (JsonReader& ip : reader.Objects("ips")) addresses.push_back(ip.String("address").value_or(""));
  return addresses;
}

int ErrorCodeOf(const std::string& output) {
  const auto document = JsonDocument::Parse(output, "answer");
  if (!document) return 0;
  JsonReader reader = document->Root();
  return static_cast<int>(reader.Int("code", 0, INT32_MAX).value_or(0));
}

}  // namespace railhead::crash
