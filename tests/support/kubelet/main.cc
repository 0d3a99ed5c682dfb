// kubelet-standin: kubelet's device manager for tests and the demo. See --help.
//
// `serve` runs it; the other commands ask a running one over DIR/control.sock and
// print JSON. Exit status: 0 done, 1 failed (message on stderr), 2 wrong command line.
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "netns/base/unique_fd.h"
#include "tests/support/kubelet/control.h"
#include "tests/support/kubelet/device_manager.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const std::vector<SeenDevice>& devices) {
  Json list = Json::array();
  for (const SeenDevice& device : devices) {
    Json numa = device.numa_nodes.empty() ? Json(nullptr) : Json(device.numa_nodes.front());
    list.push_back({{"id", device.id}, {"health", device.healthy ? "Healthy" : "Unhealthy"}, {"numa", numa}});
  }
  return list;
}

Json ToJson(const SeenAllocation& seen) {
  Json response;
  response["envs"] = seen.envs;
  response["mounts"] = Json::array();
  for (const auto& mount : seen.mounts) {
    response["mounts"].push_back({{"container_path", mount.container_path},
                                  {"host_path", mount.host_path},
                                  {"read_only", mount.read_only}});
  }
  response["devices"] = Json::array();
  for (const auto& device : seen.devices) {
    response["devices"].push_back({{"container_path", device.container_path},
                                   {"host_path", device.host_path},
                                   {"permissions", device.permissions}});
  }
  response["annotations"] = seen.annotations;
  response["cdi_devices"] = seen.cdi_devices;
  return {{"devices", seen.ids}, {"response", response}};
}

Json ToJson(const DeviceManager::Allocations& given) {
  Json containers = Json::object();
  for (const auto& [container, resources] : given) {
    for (const auto& [resource, seen] : resources) containers[container][resource] = ToJson(seen);
  }
  return containers;
}

Json Failed(const Error& error) {
  return {{"ok", false}, {"error", Describe(error)}};
}
template <typename T>
Json Answered(const Result<T>& result) {
  if (!result) return Failed(result.error());
  if constexpr (std::is_void_v<T>) {
    return {{"ok", true}, {"result", nullptr}};
  } else {
    return {{"ok", true}, {"result", ToJson(*result)}};
  }
}

std::vector<PodContainer> ContainersOf(const Json& request, const std::string& resource) {
  const auto init = request.value("init", std::vector<std::string>{});
  const Json counts = request.value("containers", Json::object());
  std::vector<PodContainer> containers;
  for (const auto& [name, count] : counts.items()) {
    const bool is_init = std::find(init.begin(), init.end(), name) != init.end();
    containers.push_back({name, {{resource, count.get<std::size_t>()}}, is_init});
  }
  return containers;
}

Json Execute(DeviceManager* manager, const Json& request) {
  const std::string command = request.value("command", "");
  const std::string resource = request.value("resource", "");
  const auto ids = request.value("ids", std::vector<std::string>{});
  if (command == "devices") {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(request.value("timeout_ms", 0));
    return Answered(manager->Devices(resource, request.value("count", 0U), deadline));
  }
  if (command == "allocate") return Answered(manager->Allocate(resource, request.value("count", 0U)));
  if (command == "admit")
    return Answered(manager->Admit(request.value("uid", ""), ContainersOf(request, resource)));
  if (command == "prestart") return Answered(manager->PreStart(resource, ids));
  if (command == "release") {
    manager->Release(resource, ids);
    return Answered(Result<void>());
  }
  if (command == "restart") {
    manager->Stop();
    return Answered(manager->Start());
  }
  return Failed({ErrorCode::kInvalid, "unknown command '" + command + "'", "", 0});
}

int Report(const Error& error) {
  (void)std::fprintf(stderr, "kubelet-standin: %s\n", Describe(error).c_str());
  return 1;
}

int Serve(const std::string& directory) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const UniqueFd stop(::signalfd(-1, &signals, SFD_CLOEXEC));
  DeviceManager manager(directory);
  if (const auto started = manager.Start(); !started) return Report(started.error());
  const auto served = ServeControl(directory + "/control.sock", stop.get(), [&](const std::string& text) {
    const Json request = Json::parse(text, nullptr, false);
    if (!request.is_object())
      return Failed({ErrorCode::kInvalid, "the request is no JSON object", "", 0}).dump();
    return Execute(&manager, request).dump();
  });
  return served ? 0 : Report(served.error());
}

int Ask(const std::string& directory, const Json& request, bool print) {
  const auto text = AskControl(directory + "/control.sock", request.dump());
  if (!text) return Report(text.error());
  const Json answer = Json::parse(*text, nullptr, false);
  if (!answer.is_object()) return Report({ErrorCode::kIo, "the stand-in has gone without an answer", "", 0});
  if (!answer.value("ok", false)) return Report({ErrorCode::kConflict, answer.value("error", ""), "", 0});
  if (print) (void)std::printf("%s\n", answer["result"].dump(2).c_str());
  return 0;
}

// "": it is CONTAINER=COUNT.
std::string CheckCount(const std::string& text) {
  const std::size_t equals = text.find('=');
  const bool good = equals != std::string::npos && equals > 0 && equals + 1 < text.size() &&
                    text.find_first_not_of("0123456789", equals + 1) == std::string::npos;
  return good ? "" : "'" + text + "' is not CONTAINER=COUNT";
}

Json Counts(const std::vector<std::string>& texts) {
  Json counts = Json::object();
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    counts[text.substr(0, equals)] = std::stoul(text.substr(equals + 1));
  }
  return counts;
}

int Main(int argc, char** argv) {
  CLI::App app("kubelet-standin: kubelet's device manager, without the rest of kubelet");
  app.require_subcommand(1);
  std::string directory;
  std::string resource;
  std::vector<std::string> ids;
  std::string uid;
  std::vector<std::string> containers;
  std::vector<std::string> init;
  unsigned count = 0;
  double timeout = 30;
  const auto command = [&](const char* name, const char* what) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->add_option("--dir", directory, "The device plugin directory")
        ->required()
        ->check(CLI::ExistingDirectory);
    return sub;
  };
  CLI::App* serve = command("serve", "Serve DIR/kubelet.sock and DIR/control.sock until SIGTERM");
  CLI::App* devices = command("devices", "Print the devices of a resource");
  devices->add_option("resource", resource)->required();
  devices->add_option("--wait", count, "Wait until so many are healthy");
  devices->add_option("--timeout", timeout, "Seconds to wait at most")->capture_default_str();
  CLI::App* allocate =
      command("allocate", "Allocate devices as for a container, print kubelet's view of the answer");
  allocate->add_option("resource", resource)->required();
  allocate->add_option("count", count)->required()->check(CLI::PositiveNumber);
  CLI::App* admit = command("admit", "Allocate for each container of a pod, and remember it: kubelet's view");
  admit->add_option("--uid", uid, "The pod's")->required();
  admit->add_option("--init", init, "A container that is an init container")->allow_extra_args(false);
  admit->add_option("resource", resource)->required();
  admit->add_option("containers", containers, "CONTAINER=COUNT")->required()->check(CheckCount);
  CLI::App* prestart = command("prestart", "Call PreStartContainer, if the plugin asked for it");
  prestart->add_option("resource", resource)->required();
  prestart->add_option("ids", ids)->required();
  CLI::App* release = command("release", "Give devices back, as when their pod is deleted");
  release->add_option("resource", resource)->required();
  release->add_option("ids", ids)->required();
  CLI::App* restart = command("restart", "End all streams, remove the sockets in DIR, serve anew");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (serve->parsed()) return Serve(directory);
  Json request{{"resource", resource}, {"ids", ids}, {"count", count}};
  for (const CLI::App* sub : {devices, allocate, admit, prestart, release, restart}) {
    if (sub->parsed()) request["command"] = sub->get_name();
  }
  if (admit->parsed()) {
    request["uid"] = uid;
    request["init"] = init;
    request["containers"] = Counts(containers);
  }
  if (devices->parsed()) request["timeout_ms"] = static_cast<int>(timeout * 1000);
  return Ask(directory, request, devices->parsed() || allocate->parsed() || admit->parsed());
}

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  return railhead::testing::Main(argc, argv);
}
