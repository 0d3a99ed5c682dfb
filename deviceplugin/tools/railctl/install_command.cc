// railctl install cni, railctl install config, railctl install seccomp.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/topology/topology.h"
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

struct CniArguments {
  std::string from;
  std::string to = "/opt/cni/bin";
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
  return !path.empty() && path[0] == '/' ? std::string() : "'" + path + "' is no absolute path";
}

// The directory of this program, whose companions railhead and railhead-ipam are.
Result<std::string> OwnDirectory() {
  const auto path = RH_TRY(ReadLink("/proc/self/exe"));
  if (!path) return Fail(ErrorCode::kNotFound, "this program's own place is not known", "give --from");
  return path->substr(0, path->rfind('/'));
}

int InstallCni(const Root& root, const CniArguments& arguments) {
  install::ProgramOrder order;
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

// What is to be put there; `errors` has what is wrong with it.
Result<std::vector<install::FileToInstall>> ReadConfig(const Root& root,
                                                       const InstallConfigArguments& arguments,
                                                       std::vector<Error>* errors) {
  std::vector<install::FileToInstall> files;
  const std::string from = root.Path(arguments.from);
  if (!RH_TRY(AddConfig(from, kFabric, ErrorsInFabric, &files, errors))) {
    errors->push_back({ErrorCode::kNotFound, "there is no " + from + "/" + kFabric,
                       "name the directory that has it with --from", 0});
  }
  RH_TRY(AddConfig(from, kTopology, ErrorsInTopology, &files, errors));
  if (!arguments.node_name) return files;
  if (arguments.node_name->empty() || arguments.node_name->find_first_of(" \t\n/") != std::string::npos) {
    errors->push_back({ErrorCode::kInvalid, "'" + *arguments.node_name + "' is no node's name",
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

void AddCni(CLI::App* install, const Root& root, int* status) {
  const auto arguments = std::make_shared<CniArguments>();
  CLI::App* cni = install->add_subcommand(
      "cni", "Put railhead and railhead-ipam into the container runtime's directory of CNI plugins");
  cni->add_option("--from", arguments->from, "Directory that has them (default: railctl's own)")
      ->check(IsAbsolute);
  cni->add_option("--to", arguments->to, "Directory of CNI plugins")
      ->check(IsAbsolute)
      ->capture_default_str();
  cni->add_flag("--force", arguments->force, "Replace newer versions, too");
  arguments->output.AddTo(cni);
  cni->footer("Exit status: 0 they are there; 1 they are not, a newer version is there, for one.");
  cni->callback([&root, status, arguments] { *status = InstallCni(root, *arguments); });
}

void AddConfigFiles(CLI::App* install, const Root& root, int* status) {
  const auto arguments = std::make_shared<InstallConfigArguments>();
  CLI::App* config = install->add_subcommand(
      "config", "Check fabric.json and topology.json and put them where all parts of Railhead read them");
  config->add_option("--from", arguments->from, "Directory of fabric.json and, optionally, topology.json")
      ->required()
      ->check(IsAbsolute);
  config->add_option("--to", arguments->to, "Directory of the configuration")
      ->check(IsAbsolute)
      ->capture_default_str();
  config->add_option("--node-name", arguments->node_name, "Write this node's Kubernetes name, too");
  arguments->output.AddTo(config);
  config->footer("Exit status: 0 they are there; 1 they could not be put there; 3 one is missing or wrong.");
  config->callback([&root, status, arguments] { *status = InstallConfig(root, *arguments); });
}

void AddSeccomp(CLI::App* install, const Root& root, int* status) {
  const auto arguments = std::make_shared<SeccompArguments>();
  CLI::App* seccomp = install->add_subcommand(
      "seccomp", "Put railheadd's list of system calls, railheadd.json, where kubelet reads such profiles");
  seccomp->add_option("--to", arguments->to, "Directory, below kubelet's own for profiles")
      ->check(IsAbsolute)
      ->capture_default_str();
  arguments->output.AddTo(seccomp);
  seccomp->footer("Exit status: 0 it is there; 1 it could not be put there.");
  seccomp->callback([&root, status, arguments] { *status = InstallSeccomp(root, *arguments); });
}

}  // namespace

void AddInstallCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* install = app->add_subcommand("install", "Put programs or configuration on this node");
  install->require_subcommand(1);
  AddCni(install, root, status);
  AddConfigFiles(install, root, status);
  AddSeccomp(install, root, status);
}

}  // namespace railhead::railctl
