// cri-pod: a pod on a container runtime, as kubelet makes one, step by step or at once.
// See --help.
//
// Exit status: the container's (run, container); else 0 done, 125 failed (message on stderr), 2 wrong command
// line.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/text.h"
#include "tests/system/cri/cri_client.h"
#include "tests/system/cri/pod_run.h"

namespace railhead::testing {
namespace {

constexpr int kFailed = 125;
constexpr std::chrono::seconds kGrace(30);

struct Options {
  std::string socket = "/run/containerd/containerd.sock";
  double limit = 300;
  PodSpec pod;
  ContainerSpec container;
  std::vector<std::string> env;          // NAME=VALUE
  std::vector<std::string> annotations;  // of the container, NAME=VALUE
  std::vector<std::string> mounts;       // FROM:TO[:ro][:slave]
  bool confined = false;
  std::string seccomp;
  std::vector<std::string> capabilities;
  std::string sandbox;
  std::string id;  // of a container
  std::vector<std::string> images;
  bool detach = false;

  [[nodiscard]] std::chrono::milliseconds Limit() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(limit * 1000));
  }
};

int Report(const Error& error) {
  (void)std::fprintf(stderr, "cri-pod: %s\n", Describe(error).c_str());
  return kFailed;
}

int Print(const ContainerOutput& output) {
  (void)std::fputs(output.out.c_str(), stdout);
  (void)std::fputs(output.err.c_str(), stderr);
  return 0;
}

int PrintLine(const std::string& line) {
  (void)std::printf("%s\n", line.c_str());
  return 0;
}

int Done(const Result<void>& result) {
  return result ? 0 : Report(result.error());
}

int Show(const Finished& finished) {
  Print(finished.output);
  if (finished.exit_code != 0) {
    (void)std::fprintf(stderr, "cri-pod: the container ended with status %d: %s\n", finished.exit_code,
                       finished.reason.c_str());
  }
  return finished.exit_code;
}

int Container(CriClient* client, const Options& options, const std::string& sandbox) {
  if (options.detach) {
    const auto id = StartContainer(client, sandbox, options.pod, options.container);
    return id ? PrintLine(*id) : Report(id.error());
  }
  const auto finished = RunContainer(client, sandbox, options.pod, options.container, options.Limit());
  return finished ? Show(*finished) : Report(finished.error());
}

int Run(CriClient* client, const Options& options) {
  const auto sandbox = client->RunPodSandbox(options.pod);
  if (!sandbox) return Report(sandbox.error());
  const int status = Container(client, options, *sandbox);
  const auto removed = RemovePod(client, *sandbox);
  return removed ? status : Report(removed.error());
}

int ListSandboxes(CriClient* client) {
  const auto sandboxes = client->PodSandboxes();
  if (!sandboxes) return Report(sandboxes.error());
  for (const std::string& id : *sandboxes) PrintLine(id);
  return 0;
}

template <typename T>
int PrintResult(const Result<T>& result) {
  if (!result) return Report(result.error());
  if constexpr (std::is_same_v<T, ContainerOutput>) {
    return Print(*result);
  } else {
    return PrintLine(*result);
  }
}

// ---- the command line ----------------------------------------------------------------

// Reads NAME=VALUE pairs into `to`. An entry that is not a pair is an error.
Result<void> Pairs(const std::vector<std::string>& pairs, std::map<std::string, std::string>* to) {
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      return Fail(ErrorCode::kInvalid, "'" + pair + "' is not NAME=VALUE");
    (*to)[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return {};
}

Result<MountSpec> ParseMount(const std::string& text) {
  const auto parts = Split(text, ':');
  if (parts.size() < 2) return Fail(ErrorCode::kInvalid, "'" + text + "' is not FROM:TO[:ro][:slave]");
  MountSpec mount{parts[0], parts[1]};
  for (std::size_t i = 2; i < parts.size(); ++i) {
    if (parts[i] != "ro" && parts[i] != "slave")
      return Fail(ErrorCode::kInvalid, "'" + parts[i] + "' is neither ro nor slave");
    (parts[i] == "ro" ? mount.read_only : mount.follows_host) = true;
  }
  return mount;
}

// Completes options that depend on each other or have several parts.
Result<void> Complete(Options* options) {
  RH_TRY(Pairs(options->env, &options->container.env));
  RH_TRY(Pairs(options->annotations, &options->container.annotations));
  for (const std::string& text : options->mounts)
    options->container.mounts.push_back(RH_TRY(ParseMount(text)));
  if (options->confined)
    options->container.confinement = Confinement{options->capabilities, options->seccomp};
  return {};
}

void PodOptions(CLI::App* command, Options* options) {
  PodSpec* pod = &options->pod;
  command->add_option("--name", pod->name, "The pod's name, and its host name")->required();
  command->add_option("--namespace", pod->name_space)->capture_default_str();
  command->add_option("--uid", pod->uid, "The pod's uid, which CNI plugins get")->required();
  command->add_option("--attempt", pod->attempt, "Number of the sandbox among those of the pod");
  command->add_option("--log-directory", pod->log_directory, "Absolute; made by the runtime")->required();
  command->add_flag("--host-network", pod->host_network, "In the node's network namespace");
  command->add_flag("--host-pid", pod->host_pid, "Sees the node's processes");
  command->add_flag("!--no-host-users", pod->host_users, "In a user namespace of its own (hostUsers: false)");
}

void ContainerOptions(CLI::App* command, Options* options) {
  ContainerSpec* container = &options->container;
  command->add_option("--container", container->name, "The container's name")->required();
  command->add_option("--image", container->image)->required();
  command->add_option("--env", options->env, "NAME=VALUE; may be repeated")->allow_extra_args(false);
  command->add_option("--cdi", container->cdi_devices, "VENDOR/CLASS=DEVICE; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--annotation", options->annotations, "NAME=VALUE; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--mount", options->mounts, "FROM:TO[:ro][:slave]; may be repeated")
      ->allow_extra_args(false);
  auto* confined = command->add_flag("--confined", options->confined,
                                     "No capabilities, read-only root, the runtime's seccomp profile");
  command->add_option("--capability", options->capabilities, "But this one; may be repeated")
      ->allow_extra_args(false)
      ->needs(confined);
  command->add_option("--seccomp", options->seccomp, "A profile's path on the node instead of the runtime's")
      ->needs(confined);
  command->add_option("--restarts", container->restarts, "How often it was restarted in this sandbox");
  command->add_flag("--detach", options->detach, "Print the container's id and leave it running");
  command->add_option("command", container->command, "Instead of the image's own command");
}

int Main(int argc, char** argv) {
  CLI::App app("cri-pod: a pod on a container runtime, as kubelet makes one");
  Options options;
  app.require_subcommand(1);
  app.add_option("--socket", options.socket, "The runtime's socket")->capture_default_str();
  app.add_option("--limit", options.limit, "Seconds for each call, and for what is waited for")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI::App* ready = app.add_subcommand("ready", "Wait until the runtime can run pods and knows the images");
  ready->add_option("image", options.images);
  ready->add_flag("--host-network", options.pod.host_network, "Pods in the node's network namespace");
  CLI::App* run = app.add_subcommand("run", "Sandbox, container, its output, removal");
  CLI::App* sandbox = app.add_subcommand("sandbox", "Make a sandbox, CNI ADD included; print its id");
  CLI::App* container = app.add_subcommand("container", "Run a container in it, print what it wrote");
  CLI::App* output = app.add_subcommand("output", "Print what a container has written so far");
  output->add_option("id", options.id)->required();
  CLI::App* stop = app.add_subcommand("stop", "End a container, and leave it to be removed with its sandbox");
  stop->add_option("id", options.id)->required();
  CLI::App* remove = app.add_subcommand("remove", "Stop and remove a sandbox, CNI DEL included");
  CLI::App* address = app.add_subcommand("address", "Print the sandbox's address of eth0");
  CLI::App* list = app.add_subcommand("list", "Print the ids of all sandboxes");
  for (CLI::App* command : {run, sandbox, container}) PodOptions(command, &options);
  for (CLI::App* command : {run, container}) ContainerOptions(command, &options);
  for (CLI::App* command : {container, remove, address})
    command->add_option("--sandbox", options.sandbox, "The sandbox's id")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (const auto complete = Complete(&options); !complete) {
    Report(complete.error());
    return 2;
  }
  CriClient client(options.socket, options.Limit());
  if (ready->parsed())
    return Done(WaitReady(&client, options.images, options.Limit(), options.pod.host_network));
  if (run->parsed()) return Run(&client, options);
  if (sandbox->parsed()) return PrintResult(client.RunPodSandbox(options.pod));
  if (container->parsed()) return Container(&client, options, options.sandbox);
  if (output->parsed()) return PrintResult(ReadOutput(&client, options.id));
  if (stop->parsed()) return Done(client.StopContainer(options.id, kGrace));
  if (remove->parsed()) return Done(RemovePod(&client, options.sandbox));
  if (address->parsed()) return PrintResult(client.PodAddress(options.sandbox));
  return list->parsed() ? ListSandboxes(&client) : 2;
}

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  return railhead::testing::Main(argc, argv);
}
