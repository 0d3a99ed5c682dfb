// railctl install cli, cni, config and seccomp; check-removal is in install_removal_command.cc.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/fabric_follow/fabric_errors.h"
#include "deviceplugin/services/fabric_follow/install_config.h"
#include "deviceplugin/services/node_index/index_config.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/install/install.h"
#include "deviceplugin/tools/install/seccomp_profile.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "ipam/store/former_blocks.h"
#include "ipam/store/store.h"
#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/root.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

using fabric_follow::kConfigMode;

constexpr const char* kNodeName = "node-name";
constexpr const char* kNodeAddress = "node-address";

struct ProgramArguments {
  std::vector<std::string> programs;
  std::string from;
  std::string to;
  bool allow_downgrade = false;
  bool are_plugins = false;  // they read fabric.json at each call
  std::string config;
  Output output;
};

struct SeccompArguments {
  std::string to = "/var/lib/kubelet/seccomp/railhead";
  Output output;
};

struct InstallConfigArguments {
  std::string from;
  std::string to = fabric_follow::kConfigDirectory;
  std::optional<std::string> node_name;
  std::optional<std::string> node_address;
  bool force = false;
  bool keep_valid = false;
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

// Of the fabric that is in force next. With keys of another version these plugins would refuse each call, and
// the runtime would report the node as NotReady.
std::vector<Error> ErrorsInNextFabric(const Root& root, const std::string& coming) {
  if (!coming.empty()) {
    const auto wanted = fabric_follow::ReadWanted(root.Path(coming), NodeName(root).value_or(""));
    if (wanted && wanted->errors.empty()) return {};
  }
  const auto text = ReadRootFile(root.Path(kFabricPath));
  if (!text) return {Wrap(text.error(), "the present programs stay")};
  auto errors = *text ? fabric_follow::ErrorsInFabric(**text, kFabricPath) : std::vector<Error>{};
  for (Error& error : errors) error.message = "the present programs stay: " + error.message;
  return errors;
}

std::chrono::seconds ReuseDelayOf(const Root& root, const std::string& coming) {
  for (const std::string& path : {coming + "/" + fabric_follow::kFabricName, std::string(kFabricPath)}) {
    const auto text = ReadFile(root.Path(path));
    if (!text || !*text) continue;
    if (const auto fabric = ParseFabric(**text, path)) return node_index::ReuseDelayOf(*fabric);
  }
  return std::chrono::seconds(kDefaultReuseDelaySeconds);
}

// By the new programs, another node may have the same addresses.
Result<void> CheckFormerBlocks(const Root& root, std::chrono::seconds reuse_delay) {
  auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
  if (!store) return {};
  const auto pools = RH_TRY(ipam::FormerBlocksInUse(*store, reuse_delay));
  if (pools.empty()) return {};
  return Fail(ErrorCode::kBusy, "addresses of leased blocks are in use or cool down, of " + Join(pools, ", "),
              "drain the node's pods with NICs, and try again after reuseDelaySeconds");
}

int InstallProgramsOf(const Root& root, const ProgramArguments& arguments) {
  if (arguments.are_plugins) {
    const auto errors = ErrorsInNextFabric(root, arguments.config);
    if (!errors.empty()) return Refuse(errors, arguments.output, kBadConfig);
    if (const auto checked = CheckFormerBlocks(root, ReuseDelayOf(root, arguments.config)); !checked)
      return Refuse({Wrap(checked.error(), "the present programs stay")}, arguments.output, kFailed);
  }
  install::ProgramOrder order;
  order.names = arguments.programs;
  auto from = arguments.from.empty() ? OwnDirectory() : Result<std::string>(root.Path(arguments.from));
  if (!from) return Refuse({from.error()}, arguments.output, kFailed);
  order.from = std::move(*from);
  order.to = root.Path(arguments.to);
  order.allow_downgrade = arguments.allow_downgrade;
  const auto programs = InstallPrograms(order);
  if (!programs) return Refuse({programs.error()}, arguments.output, kFailed);
  for (const auto& program : *programs) {
    if (!program.warning.empty()) (void)std::fprintf(stderr, "warning: %s\n", program.warning.c_str());
  }
  arguments.output.PrintList("programs", *programs, {{"ok", true}, {"to", arguments.to}});
  return kDone;
}

// What `install config` did.
struct InstalledConfig {
  std::string to;
  std::vector<fabric_follow::PendingChange> pending;
  std::vector<Error> refused;  // the present files stay
  std::vector<std::string> repaired;
  std::vector<install::InstalledFile> files;

  static void List(auto& f) {
    f.Output("ok", [](const InstalledConfig&) { return true; });
    f("to", &InstalledConfig::to);
    f("pending", &InstalledConfig::pending);
    f("refused", &InstalledConfig::refused);
    f("repaired", &InstalledConfig::repaired);
    f("files", &InstalledConfig::files);
  }
};

int InstallFiles(const Root& root, const std::vector<install::FileToInstall>& files, const std::string& to,
                 const Output& output) {
  const auto directory = install::InstallDirectory::Open(root.Path(to));
  if (!directory) return Refuse({directory.error()}, output, kFailed);
  const auto installed = directory->Put(files, kConfigMode);
  if (!installed) return Refuse({installed.error()}, output, kFailed);
  output.PrintList("files", *installed, {{"ok", true}, {"to", to}});
  return kDone;
}

// The name or the address is wrong: nothing is installed, whatever else is there.
std::optional<Error> ErrorInNode(const InstallConfigArguments& arguments) {
  const auto& name = arguments.node_name;
  if (name && (name->empty() || name->find_first_of(" \t\n/") != std::string::npos)) {
    return Error{ErrorCode::kInvalid, "'" + *name + "' is not a node's name",
                 "give the name that Kubernetes has for this node", 0};
  }
  const auto& address = arguments.node_address;
  if (!address || IpAddress::Parse(*address)) return std::nullopt;
  return Error{ErrorCode::kInvalid, "'" + *address + "' is not an address",
               "give the InternalIP that Kubernetes has for this node", 0};
}

// Whether all parts can go on with the present files. Without any, railheadd waits for a fabric that comes
// later.
bool CanGoOn(const install::InstallDirectory& directory, const std::vector<Error>& refused) {
  const std::string path = directory.PathOf(fabric_follow::kFabricName);
  const auto present = ReadFile(path);
  if (!present) return false;
  if (*present) return fabric_follow::ErrorsInFabric(**present, path).empty();
  return std::ranges::all_of(refused, [](const Error& error) { return error.code == ErrorCode::kNotFound; });
}

// The files to install, of a directory without errors.
Result<std::vector<install::FileToInstall>> FilesFor(const Root& root,
                                                     const InstallConfigArguments& arguments,
                                                     const install::InstallDirectory& directory,
                                                     const fabric_follow::WantedConfig& wanted,
                                                     InstalledConfig* done) {
  auto files = wanted.files;
  if (!arguments.force) done->pending = RH_TRY(fabric_follow::KeepBusyRails(root, directory, &files));
  return files;
}

int PrintConfig(const InstalledConfig& done, const Output& output) {
  for (const Error& error : done.refused)
    (void)std::fprintf(stderr, "warning: refused, and the present files stay: %s\n", Describe(error).c_str());
  for (const std::string& path : done.repaired) {
    (void)std::fprintf(stderr, "warning: others than root could write to %s, and no longer can\n",
                       path.c_str());
  }
  for (const auto& change : done.pending)
    (void)std::fprintf(stderr, "warning: a change waits until pods have ended: %s\n", TextOf(change).c_str());
  output.PrintTableOf(done, &InstalledConfig::files);
  return kDone;
}

int InstallConfig(const Root& root, const InstallConfigArguments& arguments) {
  const Output& output = arguments.output;
  const std::string node = arguments.node_name ? *arguments.node_name : NodeName(root).value_or("");
  auto wanted = fabric_follow::ReadWanted(root.Path(arguments.from), node);
  if (!wanted) return Refuse({wanted.error()}, output, kFailed);
  if (auto wrong = ErrorInNode(arguments)) {
    wanted->errors.push_back(*std::move(wrong));
    return Refuse(wanted->errors, output, kBadConfig);
  }
  if (!wanted->errors.empty() && !arguments.keep_valid) return Refuse(wanted->errors, output, kBadConfig);
  const auto directory = install::InstallDirectory::Open(root.Path(arguments.to));
  if (!directory) return Refuse({directory.error()}, output, kFailed);
  InstalledConfig done{arguments.to, {}, wanted->errors, {}, {}};
  std::vector<install::FileToInstall> files;
  if (wanted->errors.empty()) {
    auto chosen = FilesFor(root, arguments, *directory, *wanted, &done);
    if (chosen) {
      files = *std::move(chosen);
    } else {
      done.refused.push_back(chosen.error());
    }
  }
  if (!done.refused.empty() && !(arguments.keep_valid && CanGoOn(*directory, done.refused)))
    return Refuse(done.refused, output, wanted->errors.empty() ? kFailed : kBadConfig);
  auto repaired = directory->TakeFromOthers(
      {fabric_follow::kFabricName, fabric_follow::kTopologyName, kNodeName, kNodeAddress});
  if (!repaired) return Refuse({repaired.error()}, output, kFailed);
  done.repaired = *std::move(repaired);
  if (arguments.node_name) files.push_back({kNodeName, *arguments.node_name + "\n"});
  if (arguments.node_address) files.push_back({kNodeAddress, *arguments.node_address + "\n"});
  auto installed = directory->Put(files, kConfigMode);
  if (!installed) return Refuse({installed.error()}, output, kFailed);
  done.files = *std::move(installed);
  return PrintConfig(done, output);
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
  command->add_flag("--allow-downgrade", arguments->allow_downgrade, "Replace a newer version, too");
  arguments->output.AddTo(command);
  command->callback([&root, status, arguments] { *status = InstallProgramsOf(root, *arguments); });
}

void AddCli(CLI::App* install, const Root& root, int* status) {
  const auto arguments = std::make_shared<ProgramArguments>();
  arguments->programs = {"railctl"};
  arguments->to = "/usr/local/bin";
  CLI::App* cli = install->add_subcommand("cli", "Put railctl itself on the host");
  AddProgramOptions(cli, arguments, root, status);
  help::Set(
      cli,
      {.examples = {{"railctl install cli", "into /usr/local/bin"},
                    {"railctl install cli --to /opt/bin --allow-downgrade", "also over a newer version"}},
       .columns = ColumnsOf<install::InstalledProgram>(),
       .statuses = {{kDone, "railctl is there"},
                    {kFailed, "it is not: the directory is missing, or a newer version is there"}}});
}

void AddCni(CLI::App* install, const Root& root, int* status) {
  const auto arguments = std::make_shared<ProgramArguments>();
  arguments->programs = {"railhead", "railhead-ipam"};
  arguments->to = "/opt/cni/bin";
  arguments->are_plugins = true;
  CLI::App* cni = install->add_subcommand(
      "cni", "Put railhead and railhead-ipam into the runtime's directory of CNI plugins");
  AddProgramOptions(cni, arguments, root, status);
  cni->add_option(
         "--config", arguments->config,
         "Directory from which `railctl install config` comes next: its fabric.json counts if it is valid")
      ->check(IsAbsolute);
  help::Set(
      cni,
      {.more =
           "It puts both or none. Where /etc/railhead/fabric.json is not valid for them, the present ones "
           "stay.",
       .examples = {{"railctl install cni", "into /opt/cni/bin"},
                    {"railctl install cni --to /usr/lib/cni --allow-downgrade",
                     "for Debian's containerd, in any case"}},
       .columns = ColumnsOf<install::InstalledProgram>(),
       .statuses = {{kDone, "both are there"},
                    {kFailed,
                     "they are not: the directory is missing, a newer version is there, or pods have "
                     "addresses of leased blocks"},
                    {kBadConfig, "they are not: fabric.json is invalid"}}});
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
  config->add_option("--node-address", arguments->node_address,
                     "Write the address by which Kubernetes knows this node, too");
  config->add_flag("--force", arguments->force, "Change rails that pods use, too");
  config->add_flag("--keep-valid", arguments->keep_valid,
                   "Keep the present files where they are valid and the others are refused; succeed "
                   "where no fabric.json is anywhere");
  arguments->output.AddTo(config);
  help::Set(
      config,
      {.more =
           "A rail that pods use keeps its present definition until it is free. Files get the mode 0644. "
           "Group and others lose the right to write to the directory, and to files of the same names in it.",
       .examples = {{"railctl install config --from /root/new", "onto this node"},
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
