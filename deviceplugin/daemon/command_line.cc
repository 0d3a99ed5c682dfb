#include "deviceplugin/daemon/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "deviceplugin/daemon/go_flags.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "deviceplugin/support/help/help.h"

namespace railhead::daemon {
namespace {

constexpr const char* kProgram = "railheadd";
constexpr std::int64_t kMaxInterval = 86400;

std::string IsHttpAddress(const std::string& text) {
  const auto address = text.empty() ? http::HttpAddress{} : http::ParseHttpAddress(text);
  return address ? std::string() : Describe(address.error());
}

std::string IsAbsolute(const std::string& path) {
  return !path.empty() && path[0] == '/' ? std::string() : "'" + path + "' is not an absolute path";
}

void AddModes(CLI::App& app, CommandLine* line) {
  auto* list = app.add_flag("--list", line->list, "Print what would be advertised, as JSON, and exit");
  auto* once = app.add_flag(
      "--reconcile-once", line->reconcile_once,
      "Run one reconcile pass, which restores devices whose pod has ended; print its actions as JSON, "
      "and exit");
  auto* timings = app.add_flag("--timings", line->timings,
                               "Print how long the phases of the latest attachments took, as JSON, and exit");
  auto* ask = app.add_option("--ask", line->ask,
                             "Ask the railheadd at --http-socket for /healthz or /readyz, print its answer, "
                             "and exit")
                  ->check(CLI::IsMember({"/healthz", "/readyz"}))
                  ->needs("--http-socket")
                  ->type_name("PAGE");
  list->excludes(once)->excludes(timings)->excludes(ask);
  once->excludes(timings)->excludes(ask);
  timings->excludes(ask);
}

void AddLogAndHttp(CLI::App& app, CommandLine* line, std::string* http_address) {
  app.add_option("--log-level", line->log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  const auto set_format = [line](const std::string& word) {
    line->log_format = word == "text" ? LogFormat::kText : LogFormat::kJson;
  };
  app.add_option_function<std::string>("--log-format", set_format, "json (one object per line) or text")
      ->check(CLI::IsMember({"json", "text"}))
      ->default_str("json");
  app.add_option("--http-address", *http_address,
                 "Where /metrics, /metrics/nics, /healthz and /readyz are served, IP:PORT; \"\": nowhere")
      ->check(IsHttpAddress)
      ->capture_default_str();
  app.add_option("--http-socket", line->http_socket,
                 "Serve them at this Unix socket, too, another for each railheadd: of two at once only one "
                 "answers at --http-address")
      ->check(IsAbsolute);
}

}  // namespace

std::optional<int> ParseCommandLine(int argc, char** argv, CommandLine* line) {
  CLI::App app("railheadd: gives SR-IOV RoCE NICs to kubelet as extended resources", kProgram);
  app.formatter(help::MakeFormatter());
  std::string fabric;
  std::string config_file;
  std::string prefix = resources::kSriovdpPrefix;
  std::int64_t interval = line->reconcile_interval.count();
  std::int64_t resync = line->resync_interval.count();
  std::string http_address = "127.0.0.1:9917";
  app.set_version_flag("--version", std::string("railheadd ") + RAILHEAD_VERSION);
  auto* fabric_option = app.add_option("--fabric", fabric, "The fabric (default: /etc/railhead/fabric.json)");
  auto* config_option = app.add_option("--config-file", config_file,
                                       "sriov-network-device-plugin's config.json, instead of a fabric");
  fabric_option->check(IsAbsolute)->excludes(config_option);
  config_option->check(IsAbsolute);
  app.add_option("--resource-prefix", prefix, "Prefix of config.json's resources without resourcePrefix")
      ->capture_default_str();
  app.add_flag("--use-cdi", line->source.use_cdi,
               "Name config.json's devices to the container runtime by CDI instead of as device nodes")
      ->excludes(fabric_option);
  app.add_option("--kubelet-dir", line->kubelet_directory, "Directory of kubelet.sock")
      ->check(IsAbsolute)
      ->capture_default_str();
  AddLogAndHttp(app, line, &http_address);
  app.add_option("--reconcile-interval", interval, "Seconds between two reconcile passes; 0: none")
      ->check(CLI::Range(std::int64_t{0}, kMaxInterval))
      ->capture_default_str();
  app.add_option("--resync-interval", resync,
                 "Seconds between two discoveries of hardware and configuration without an event or SIGHUP")
      ->check(CLI::Range(std::int64_t{1}, kMaxInterval))
      ->capture_default_str();
  app.add_option(
         "--probe-keys", line->probe_keys,
         "Keys that the cluster's nodes share: probes of rails are signed with them where the file is there")
      ->check(IsAbsolute)
      ->capture_default_str();
  app.add_option(
         "--follow-config", line->follow_config,
         "Take a changed fabric.json of this directory over into /etc/railhead; rails that pods use keep "
         "their definition until they are free")
      ->check(IsAbsolute)
      ->excludes(fabric_option);
  app.add_option("--nfd-features", line->nfd_features,
                 "Keep labels about the node's rails in this file, for Node Feature Discovery's local source")
      ->check(IsAbsolute);
  AddModes(app, line);
  help::Set(
      &app,
      {.examples = {{"railheadd --list", "what this node would advertise"},
                    {"railheadd --fabric /root/fabric.json --log-format text", "serve, with another fabric"}},
       .statuses = {
           {kStopped, "stopped by a signal, or done"},
           {kFailed,
            "failed while running, or one of --reconcile-once's actions did, or --ask got no good answer"},
           {kBadConfig, "the configuration is missing or wrong"}}});
  bool man_page = false;
  app.add_flag("--man-page", man_page, "Print the manual page railheadd(8)")->group("");  // for packages
  // CLI11 takes them from the end.
  auto foreign = TranslateGoFlags({argv + 1, argv + argc});
  line->dropped_arguments = std::move(foreign.dropped);
  std::reverse(foreign.arguments.begin(), foreign.arguments.end());
  try {
    app.parse(std::move(foreign.arguments));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kStopped : kUsage;
  }
  if (man_page) {
    const std::string text = help::ManPage(app, kProgram, RAILHEAD_VERSION);
    return std::fputs(text.c_str(), stdout) < 0 ? kFailed : kStopped;
  }
  if (!fabric.empty()) line->source.fabric = fabric;
  if (!config_file.empty()) line->source.sriovdp = config_file;
  line->source.resource_prefix = prefix;
  if (!http_address.empty()) line->http_address = *http::ParseHttpAddress(http_address);
  line->reconcile_interval = std::chrono::seconds(interval);
  line->resync_interval = std::chrono::seconds(resync);
  return std::nullopt;
}

}  // namespace railhead::daemon
