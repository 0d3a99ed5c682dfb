// An IPAM plugin for tests of the plugins that call it. It is small and has no sanitizers, since it runs
// thousands of times.
//
// It returns the address that the configuration names (ipam.address or ipam.addresses.IFNAME), or none, with
// ipam.gateway and ipam.routes. With ipam.refuse-COMMAND it answers with that code; for "crash" a signal
// kills it. The program is DIR/bin/test-ipam, and it keeps its files in DIR:
//
//   DIR/ipam.log                 its calls, one line each: "ADD net1"
//
//   DIR/held/CONTAINER@IFNAME    an address from ADD to DEL, with the network's name
//
//   DIR/stdin-COMMAND            its last standard input
//
// If DIR/ipam.fail-COMMAND or DIR/ipam.fail-COMMAND-IFNAME exists, the command fails. ADD then still takes
// the address, and DEL has to release it.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

std::string ContentOf(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The fields of the answer to ADD.
nlohmann::json Answer(const nlohmann::json& config, const std::string& ifname) {
  nlohmann::json answer = {{"cniVersion", "1.0.0"}, {"dns", nlohmann::json::object()}};
  answer["ips"] = nlohmann::json::array();
  const auto ipam = config.value("ipam", nlohmann::json::object());
  nlohmann::json address = ipam.contains("address") ? ipam["address"] : nlohmann::json();
  if (ipam.contains("addresses") && ipam["addresses"].contains(ifname)) address = ipam["addresses"][ifname];
  const auto all = address.is_array() ? address : nlohmann::json::array({address});
  for (const auto& one : all) {
    if (!one.is_string()) continue;
    nlohmann::json ip = {{"address", one}};
    if (ipam.contains("gateway")) ip["gateway"] = ipam["gateway"];
    answer["ips"].push_back(ip);
  }
  if (ipam.contains("routes")) answer["routes"] = ipam["routes"];
  if (ipam.contains("routes")) answer["cniVersion"] = "1.1.0";
  return answer;
}

}  // namespace

int main(int /*argc*/, char** argv) {
  const fs::path directory = fs::path(argv[0]).parent_path().parent_path();
  const std::string command = Variable("CNI_COMMAND");
  const std::string ifname = Variable("CNI_IFNAME");
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  std::ofstream(directory / "ipam.log", std::ios::app)
      << command + (ifname.empty() ? "" : " " + ifname) + "\n";
  std::ofstream(directory / ("stdin-" + command)) << input;
  const auto config = nlohmann::json::parse(input, nullptr, false);
  const std::string network = config.value("name", "");
  const fs::path held = directory / "held" / (Variable("CNI_CONTAINERID") + "@" + ifname);
  if (command == "ADD") {
    fs::create_directories(held.parent_path());
    std::ofstream(held) << network;
  }
  for (const auto& name : {"ipam.fail-" + command, "ipam.fail-" + command + "-" + ifname}) {
    if (!fs::exists(directory / name)) continue;
    const bool status = command == "STATUS";
    std::cout << nlohmann::json{
        {"cniVersion", "1.0.0"},
        {"code", status ? 50 : 105},
        {"msg", status ? "the address store is away" : "no address left in the range"}};
    return 1;
  }
  const auto refuse =
      config.value("ipam", nlohmann::json::object()).value("refuse-" + command, nlohmann::json());
  if (refuse == "crash") std::abort();
  if (refuse.is_number()) {
    std::cout << nlohmann::json{{"cniVersion", "1.0.0"}, {"code", refuse}, {"msg", "not understood"}};
    return 1;
  }
  if (command == "DEL" && ContentOf(held) == network) fs::remove(held);
  if (command == "ADD") std::cout << Answer(config, ifname);
  return 0;
}
