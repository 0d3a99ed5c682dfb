#include "tests/support/ipam/run_ipam.h"

#include <memory>

#include "tests/support/process.h"

namespace railhead::testing {
namespace {

ProcessSpec Spec(const std::string& root, const Call& call) {
  return {.arguments = {RAILHEAD_IPAM},
          .environment = std::vector<std::string>{"RAILHEAD_ROOT=" + root, "CNI_COMMAND=" + call.command,
                                                  "CNI_CONTAINERID=" + call.container,
                                                  "CNI_IFNAME=" + call.ifname, "CNI_NETNS=" + call.netns,
                                                  "CNI_PATH=/usr/lib/cni", "CNI_ARGS=" + call.args},
          .input = call.config};
}

Answer Await(Process& process) {
  const int status = process.Wait();
  return {status, process.out(), process.err()};
}

}  // namespace

nlohmann::json Answer::Json() const {
  auto json = nlohmann::json::parse(out, nullptr, false);
  return json.is_discarded() ? nlohmann::json() : json;
}

std::string Answer::Address() const {
  const auto json = Json();
  if (status == 0 && json.is_object() && json.contains("ips") && json["ips"].size() == 1) {
    return json["ips"][0]["address"].get<std::string>();
  }
  return std::to_string(status) + " " + out + err;
}

std::string Answer::Addresses() const {
  const auto json = Json();
  if (status != 0 || !json.is_object()) return Address();
  std::string text;
  for (const auto& ip : json.value("ips", nlohmann::json::array())) {
    if (!text.empty()) text += ", ";
    if (ip.contains("interface")) text += std::to_string(ip["interface"].get<int>()) + " ";
    text += ip["address"].get<std::string>();
    if (ip.contains("gateway")) text += " via " + ip["gateway"].get<std::string>();
  }
  return text;
}

std::string Answer::Error() const {
  const auto json = Json();
  if (status != 1 || !json.is_object() || !json.contains("code")) return "no CNI error: " + Address();
  return std::to_string(json["code"].get<int>()) + ": " + json["msg"].get<std::string>() +
         (json.contains("details") ? "; " + json["details"].get<std::string>() : "");
}

Answer RunIpam(const std::string& root, const Call& call) {
  Process process(Spec(root, call));
  return Await(process);
}

std::vector<Answer> RunIpamAtOnce(const std::string& root, const std::vector<Call>& calls) {
  std::vector<std::unique_ptr<Process>> processes;
  processes.reserve(calls.size());
  for (const Call& call : calls) processes.push_back(std::make_unique<Process>(Spec(root, call)));
  std::vector<Answer> answers;
  answers.reserve(calls.size());
  for (const auto& process : processes) answers.push_back(Await(*process));
  return answers;
}

Answer RunIpamWith(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RAILHEAD_IPAM);
  Process process({.arguments = arguments, .environment = std::vector<std::string>()});
  return Await(process);
}

}  // namespace railhead::testing
