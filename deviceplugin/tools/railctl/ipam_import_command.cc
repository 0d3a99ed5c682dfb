// railctl ipam import: what another IPAM plugin has given becomes railhead-ipam's.
#include <chrono>
#include <cstdio>
#include <memory>

#include "deviceplugin/services/reconcile/address_holders.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "ipam/store/import_state.h"
#include "netns/base/files.h"
#include "netns/base/root.h"

namespace railhead::railctl {
namespace {

constexpr std::size_t kMaxFile = std::size_t{64} << 20;

struct ImportOptions {
  std::string network;
  std::string directory = "/var/lib/cni/networks";
  std::vector<std::string> subnets;
  std::string file;
  int away_hours = 168;
};

int PrintOutcome(const ipam::ImportOutcome& outcome, int away_hours) {
  for (const Error& refused : outcome.refused) Complain(refused, kFailed);
  (void)std::printf("%zu addresses are held by their pods", outcome.held);
  if (outcome.kept_away > 0)
    (void)std::printf(", %zu of other nodes are in quarantine for %d hours", outcome.kept_away, away_hours);
  (void)std::printf(", %zu refused\n", outcome.refused.size());
  return outcome.refused.empty() ? kDone : kFailed;
}

Result<ipam::ImportOutcome> ImportAll(const Root& root, const std::vector<ipam::ImportedAddress>& addresses,
                                      const std::function<bool(const ipam::ImportedAddress&)>& here,
                                      int away_hours) {
  ipam::AddressStore store = RH_TRY(ipam::AddressStore::Open(root));
  return Import(store, addresses, here, std::chrono::hours(away_hours));
}

Result<ipam::ImportOutcome> FromHostLocal(const Root& root, const ImportOptions& options) {
  std::vector<IpPrefix> subnets;
  for (const std::string& text : options.subnets) {
    const auto subnet = IpPrefix::Parse(text);
    if (!subnet)
      return Fail(ErrorCode::kInvalid, "--subnet: '" + text + "' is not a prefix", "such as 10.0.0.0/24");
    subnets.push_back(*subnet);
  }
  const auto addresses = RH_TRY(
      ipam::ReadHostLocal(root.Path(options.directory) + "/" + options.network, options.network, subnets));
  return ImportAll(
      root, addresses, [](const ipam::ImportedAddress&) { return true; }, options.away_hours);
}

// Its pools are the whole cluster's.
Result<ipam::ImportOutcome> FromWhereabouts(const Root& root, const ImportOptions& options) {
  const auto text = RH_TRY(ReadFile(options.file, kMaxFile));
  if (!text) return Fail(ErrorCode::kNotFound, "no such file: " + options.file);
  const auto addresses = RH_TRY(ipam::ReadWhereabouts(*text, options.file, options.network));
  const auto holders = RH_TRY(reconcile::AddressHolders::Read(root));
  const auto here = [&](const ipam::ImportedAddress& imported) {
    ipam::AddressRecord record;
    record.owner = imported.owner;
    return holders.IsRemembered(record) || holders.Attachment(record) != nullptr;
  };
  return ImportAll(root, addresses, here, options.away_hours);
}

using From = Result<ipam::ImportOutcome> (*)(const Root& root, const ImportOptions& options);

void AddFrom(CLI::App* import, const char* name, const char* what, const Root& root, int* status, From from,
             const std::vector<help::Example>& examples,
             const std::function<void(CLI::App*, ImportOptions*)>& add_options) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = import->add_subcommand(name, what);
  help::Set(command,
            {.examples = examples,
             .notes = "Run it after the change of the configuration and before new pods start. A second "
                      "run changes nothing.",
             .statuses = {{kFailed, "an address was refused, or the state cannot be read"}}});
  command->add_option("--network", options->network, "name of the CNI network, as it will be")->required();
  add_options(command, options.get());
  command->callback([options, &root, status, from] {
    const auto outcome = from(root, *options);
    *status = outcome ? PrintOutcome(*outcome, options->away_hours) : Complain(outcome.error(), kFailed);
  });
}

}  // namespace

void AddIpamImportCommand(CLI::App* ipam, const Root& root, int* status) {
  CLI::App* import = ipam->add_subcommand("import", "Import the allocations of another IPAM plugin");
  import->require_subcommand(1);
  AddFrom(
      import, "host-local", "Take over the addresses of host-local from its directory on this node", root,
      status, FromHostLocal,
      {{"railctl ipam import host-local --network rails --subnet 10.100.0.0/16", "a network with one range"},
       {"railctl ipam import host-local --network net --subnet 10.1.0.0/16 10.2.0.0/16",
        "a network with two ranges"}},
      [](CLI::App* command, ImportOptions* options) {
        command->add_option("--subnet", options->subnets, "of the network's ranges; may be repeated")
            ->required();
        command->add_option("--directory", options->directory, "host-local's dataDir")->capture_default_str();
      });
  AddFrom(import, "whereabouts", "Take over the addresses of whereabouts from its IPPools, as JSON", root,
          status, FromWhereabouts,
          {{"railctl ipam import whereabouts pools.json --network rails",
            "addresses of other nodes stay unused for a week"},
           {"railctl ipam import whereabouts pools.json --network rails --away-hours 24", "for a day"}},
          [](CLI::App* command, ImportOptions* options) {
            command
                ->add_option("file", options->file,
                             "kubectl get ippools.whereabouts.cni.cncf.io -A -o json >FILE")
                ->required();
            command
                ->add_option("--away-hours", options->away_hours,
                             "hours of quarantine for addresses of pods on other nodes")
                ->check(CLI::Range(1, 24 * 365))
                ->capture_default_str();
          });
}

}  // namespace railhead::railctl
