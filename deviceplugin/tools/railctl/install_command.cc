// railctl install cli, cni, config and seccomp; check-removal is in install_removal_command.cc.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/install/install.h"
#include "deviceplugin/tools/install/seccomp_profile.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "deviceplugin/tools/railctl/output.h"
#include "netns/base/files.h"

namespace railhead::railctl {
namespace {

constexpr mode_t kConfigMode = 0644;
constexpr const char* kFabric = "fabric.json";
constexpr const char* kTopology = "topology.json";
constexpr const char* kNodeName = "node-name";

struct ProgramArguments {
  std::vector<std::string> programs;
  std::string from;
  std::string to;
  bool force = false;
  Output output;
};

struct SeccompArguments {
  std::string to = "/var/lib/kubelet/seccomp/railhead";
  Output output;
};

struct InstallConfigArguments {
  std::string from;
  std::string to = "/etc/railhead";
  std::optional<std::string> node_name;
  Output output;
};

std::string IsAbsolute(const std::string& path) {
  return !path.empty() && path[0] == '/' ? std::string() : "'" + path + "' is not an absolute path";
}

// The directory of this program, which has all of Railhead's programs.
Result<std::string> OwnDirectory() {
  const auto path = RH_TRY(ReadLink("/proc/self/exe"));
  if (!path) return Fail(ErrorCode::kNotFound, "this program's own place is not known", "give --from");
  return path->substr(0, path->rfind('/'));
}

int InstallProgramsOf(const Root& root, const ProgramArguments& arguments) {
  install::ProgramOrder order;
  order.names = arguments.programs;
  auto from = arguments.from.empty() ? OwnDirectory() : Result<std::string>(root.Path(arguments.from));
  if (!from) return Refuse({from.error()}, arguments.output, kFailed);
  order.from = std::move(*from);
  order.to = root.Path(arguments.to);
  order.force = arguments.force;
  const auto programs = InstallPrograms(order);
  if (!programs) return Refuse({programs.error()}, arguments.output, kFailed);
  arguments.output.PrintList("programs", *programs, {{"ok", true}, {"to", arguments.to}});
  return kDone;
}

// Adds the file, if there is one, and what is wrong with it. False: it could not be read.
template <typename ErrorsIn>
Result<bool> AddConfig(const std::string& directory, const char* name, const ErrorsIn& errors_in,
                       std::vector<install::FileToInstall>* files, std::vector<Error>* errors) {
  const std::string path = directory + "/" + name;
  auto content = RH_TRY(ReadFile(path));
  if (!content) return false;
  for (Error& error : errors_in(*content, path)) errors->push_back(std::move(error));
  files->push_back({name, std::move(*content)});
  return true;
}

std::vector<Error> ErrorsInTopology(const std::string& text, const std::string& what) {
  const auto parsed = topology::ParseTopologyConfig(text, what);
  return parsed ? std::vector<Error>{} : std::vector<Error>{parsed.error()};
}

// The files to install; `errors` gets their errors.
Result<std::vector<install::FileToInstall>> ReadConfig(const Root& root,
                                                       const InstallConfigArguments& arguments,
                                                       std::vector<Error>* errors) {
  std::vector<install::FileToInstall> files;
  const std::string from = root.Path(arguments.from);
  if (!RH_TRY(AddConfig(from, kFabric, ErrorsInFabric, &files, errors))) {
    errors->push_back({ErrorCode::kNotFound, "no such file: " + from + "/" + kFabric,
                       "name the directory that has it with --from", 0});
  }
  RH_TRY(AddConfig(from, kTopology, ErrorsInTopology, &files, errors));
  if (!arguments.node_name) return files;
  if (arguments.node_name->empty() || arguments.node_name->find_first_of(" \t\n/") != std::string::npos) {
    errors->push_back({ErrorCode::kInvalid, "'" + *arguments.node_name + "' is not a node's name",
                       "give the name that Kubernetes has for this node", 0});
  }
  files.push_back({kNodeName, *arguments.node_name + "\n"});
  return files;
}

int InstallFiles(const Root& root, const std::vector<install::FileToInstall>& files, const std::string& to,
                 const Output& output) {
  const auto directory = install::InstallDirectory::Open(root.Path(to));
  if (!directory) return Refuse({directory.error()}, output, kFailed);
  const auto installed = directory->Put(files, kConfigMode);
  if (!installed) return Refuse({installed.error()}, output, kFailed);
  output.PrintList("files", *installed, {{"ok", true}, {"to", to}});
  return kDone;
}

int InstallConfig(const Root& root, const InstallConfigArguments& arguments) {
  std::vector<Error> errors;
  const auto files = ReadConfig(root, arguments, &errors);
  if (!files) return Refuse({files.error()}, arguments.output, kFailed);
  if (!errors.empty()) return Refuse(errors, arguments.output, kBadConfig);
  return InstallFiles(root, *files, arguments.to, arguments.output);
}

int InstallSeccomp(const Root& root, const SeccompArguments& arguments) {
  return InstallFiles(root, {{"railheadd.json", std::string(kSeccompProfile)}}, arguments.to,
                      arguments.output);
}

void AddProgramOptions(CLI::App* command, const std::shared_ptr<ProgramArguments>& arguments,
                       const Root& root, int* status) {
  command->add_option("--from", arguments->from, "Directory that has it (default: railctl's own)")
      ->check(IsAbsolute);
  command->add_option("--to", arguments->to, "Directory to put it into")
      ->check(IsAbsolute)
      ->capture_default_str();
  command->add_flag("--force", arguments->force, "Replace a newer version, too");
  arguments->output.AddTo(command);
  command->callback([&root, status, arguments] { *status = InstallProgramsOf(root, *arguments); });
}

void AddCli(CLI::App* install, const Root& root, int* status) {
  const auto arguments = std::make_shared<ProgramArguments>();
  arguments->programs = {"railctl"};
  arguments->to = "/usr/local/bin";
  CLI::App* cli = install->add_subcommand("cli", "Put railctl itself on the host");
  AddProgramOptions(cli, arguments, root, status);
  help::Set(cli,
            {.examples = {{"railctl install cli", "into /usr/local/bin"},
                          {"railctl install cli --to /opt/bin --force", "also over a newer version"}},
             .columns = ColumnsOf<install::InstalledProgram>(),
             .statuses = {{kDone, "railctl is there"},
                          {kFailed, "it is not: the directory is missing, or a newer version is there"}}});
}

void AddCni(CLI::App* install, const Root& root, int* status) {
  const auto arguments = std::make_shared<ProgramArguments>();
  arguments->programs = {"railhead", "railhead-ipam"};
  arguments->to = "/opt/cni/bin";
  CLI::App* cni = install->add_subcommand(
      "cni", "Put railhead and railhead-ipam into the runtime's directory of CNI plugins");
  AddProgramOptions(cni, arguments, root, status);
  help::Set(cni,
            {.more = "It puts both or none.",
             .examples = {{"railctl install cni", "into /opt/cni/bin"},
                          {"railctl install cni --to /usr/lib/cni --force",
                           "for Debian's containerd, in any case"}},
             .columns = ColumnsOf<install::InstalledProgram>(),
             .statuses = {{kDone, "both are there"},
                          {kFailed, "they are not: the directory is missing, or a newer version is there"}}});
}

void AddConfigFiles(CLI::App* install, const Root& root, int* status) {
  const auto arguments = std::make_shared<InstallConfigArguments>();
  CLI::App* config = install->add_subcommand(
      "config", "Check fabric.json and topology.json and put them where Railhead reads them");
  config->add_option("--from", arguments->from, "Directory of fabric.json and, optionally, topology.json")
      ->required()
      ->check(IsAbsolute);
  config->add_option("--to", arguments->to, "Directory of the configuration")
      ->check(IsAbsolute)
      ->capture_default_str();
  config->add_option("--node-name", arguments->node_name, "Write this node's Kubernetes name, too");
  arguments->output.AddTo(config);
  help::Set(config, {.examples = {{"railctl install config --from /root/new", "onto this node"},
                                  {"railctl install config --from /config --node-name gpu-001",
                                   "with the name that Kubernetes has for the node"}},
                     .columns = ColumnsOf<install::InstalledFile>(),
                     .statuses = {{kDone, "the files are there"},
                                  {kFailed, "they could not be put there"},
                                  {kBadConfig, "a file is missing or invalid, and nothing has changed"}}});
  config->callback([&root, status, arguments] { *status = InstallConfig(root, *arguments); });
}

void AddSeccomp(CLI::App* install, const Root& root, int* status) {
  const auto arguments = std::make_shared<SeccompArguments>();
  CLI::App* seccomp = install->add_subcommand(
      "seccomp", "Put railheadd's list of system calls where kubelet reads seccomp profiles");
  seccomp->add_option("--to", arguments->to, "Directory, below kubelet's own for profiles")
      ->check(IsAbsolute)
      ->capture_default_str();
  arguments->output.AddTo(seccomp);
  help::Set(seccomp, {.examples = {{"railctl install seccomp", "into kubelet's own directory"},
                                   {"railctl install seccomp --to /data/kubelet/seccomp/railhead",
                                    "where kubelet has another --root-dir"}},
                      .columns = ColumnsOf<install::InstalledFile>(),
                      .statuses = {{kDone, "the file is there"}, {kFailed, "it could not be put there"}}});
  seccomp->callback([&root, status, arguments] { *status = InstallSeccomp(root, *arguments); });
}

}  // namespace

void AddInstallCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* install = app->add_subcommand("install", "Put programs or configuration on this node");
  install->require_subcommand(1);
  AddCli(install, root, status);
  AddCni(install, root, status);
  AddConfigFiles(install, root, status);
  AddSeccomp(install, root, status);
  AddInstallRemovalCommand(install, root, status);
}

}  // namespace railhead::railctl
