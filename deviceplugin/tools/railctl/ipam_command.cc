// railctl ipam: the node's addresses.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/health/health_json.h"
#include "deviceplugin/services/reconcile/address_facts.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/ipam_report.h"

namespace railhead::railctl {
namespace {

struct IpamOptions {
  bool json = false;
  bool force = false;
  std::string pool;
  std::string which;  // an address, or a container's id or the beginning of it
};

bool Matches(const KnownAddress& known, const std::string& which) {
  return known.record.address.ToString() == which || known.record.owner.container.rfind(which, 0) == 0;
}

void PrintAddresses(const std::vector<KnownAddress>& addresses, bool as_json) {
  if (!as_json) return PrintTable(AsRows(addresses));
  nlohmann::json list = nlohmann::json::array();
  for (const KnownAddress& known : addresses) list.push_back(AsJson(known));
  PrintJson({{"addresses", std::move(list)}});
}

int ListAddresses(const AddressReport& report, const IpamOptions& options) {
  std::vector<KnownAddress> chosen = report.addresses;
  if (!options.pool.empty())
    std::erase_if(chosen, [&](const KnownAddress& known) { return known.record.pool != options.pool; });
  PrintAddresses(chosen, options.json);
  return kDone;
}

int ShowAddress(const AddressReport& report, const IpamOptions& options) {
  std::vector<KnownAddress> chosen = report.addresses;
  std::erase_if(chosen, [&](const KnownAddress& known) { return !Matches(known, options.which); });
  if (chosen.empty()) {
    return Complain({ErrorCode::kNotFound, "'" + options.which + "' is no address or container in the store",
                     "an address that is free is not in it; all that is: railctl ipam list", 0},
                    kFailed);
  }
  PrintAddresses(chosen, options.json);
  return kDone;
}

int CheckAddresses(const AddressReport& report, const IpamOptions& options) {
  std::vector<KnownAddress> leaked = report.addresses;
  std::erase_if(leaked, [](const KnownAddress& known) { return known.leak.empty(); });
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const KnownAddress& known : leaked) list.push_back(AsJson(known));
    PrintJson({{"leaked", std::move(list)}, {"damage", report.damage}, {"complete", report.complete}});
  } else {
    for (const std::string& damage : report.damage) (void)std::printf("damaged: %s\n", damage.c_str());
    for (const KnownAddress& known : leaked) {
      (void)std::printf("leaked: %s of %s, container %s: %s\n", known.record.address.ToString().c_str(),
                        known.record.owner.network.c_str(), known.record.owner.container.c_str(),
                        known.leak.c_str());
    }
    if (!leaked.empty())
      (void)std::printf("railheadd releases leaked addresses; by hand: railctl ipam release ADDRESS\n");
    if (!report.complete) (void)std::printf("no runtime keeps results here: leaks cannot be told\n");
    if (report.damage.empty() && leaked.empty())
      (void)std::printf("%zu addresses, well\n", report.addresses.size());
  }
  return report.damage.empty() && leaked.empty() ? kDone : kFailed;
}

int Export(const AddressReport& report, const IpamOptions& /*options*/) {
  PrintAddresses(report.addresses, true);
  return kDone;
}

int Events(const Root& root, bool as_json) {
  const auto facts = ReadAddressFacts(root, 0);
  if (!facts) return Complain(facts.error(), kFailed);
  nlohmann::json list = nlohmann::json::array();
  std::vector<Row> rows = {{"TIME", "EVENT", "WHAT"}};
  for (const AddressEvent& event : facts->events) {
    const std::string time =
        FormatTime(std::chrono::system_clock::time_point(std::chrono::seconds(event.wall_seconds)));
    const std::string name(NameOf(event.kind));
    rows.push_back({time, name, Sentence(event)});
    nlohmann::json json = {{"number", event.number}, {"time", time}, {"event", name}, {"count", event.count}};
    if (!event.pool.empty()) json["pool"] = event.pool;
    if (event.address) json["address"] = event.address->ToString();
    if (!event.owner.container.empty()) json["container"] = event.owner.container;
    list.push_back(std::move(json));
  }
  if (as_json) {
    PrintJson({{"events", std::move(list)}});
  } else {
    PrintTable(rows);
  }
  return kDone;
}

// What is in use is released only by force: the next pod would get its address.
Result<void> Release(const Root& root, const AddressReport& report, const IpamOptions& options) {
  const auto known =
      std::find_if(report.addresses.begin(), report.addresses.end(), [&](const KnownAddress& one) {
        return one.record.address.ToString() == options.which && one.record.state == AddressState::kHeld;
      });
  if (known == report.addresses.end()) {
    return Fail(ErrorCode::kNotFound, options.which + " is held by nobody", "what is: railctl ipam list");
  }
  if (known->leak.empty() && !options.force) {
    return Fail(ErrorCode::kBusy,
                options.which + " may be in use by container " + known->record.owner.container +
                    (known->pod.empty() ? std::string() : ", pod " + known->pod),
                "delete the pod; or, when you know that it is gone: --force");
  }
  auto store = RH_TRY(AddressStore::OpenExisting(root));
  const AddressRecord& wanted = known->record;
  // The very holder that was looked at: the address may be another's by now.
  const auto released = RH_TRY(store->ReleaseWhere([&](const AddressRecord& held) {
    return held.pool == wanted.pool && held.address == wanted.address && held.owner == wanted.owner;
  }));
  if (released.empty())
    return Fail(ErrorCode::kConflict, options.which + " has just been released by another");
  (void)std::printf("released %s; it rests now\n", options.which.c_str());
  return {};
}

using Act = std::function<int(const AddressReport& report, const IpamOptions& options)>;

int RunIpam(const Root& root, const IpamOptions& options, const Act& act) {
  const auto report = ReportAddresses(root);
  if (!report) return Complain(report.error(), kFailed);
  // No store: nothing is held.
  return act(report->value_or(AddressReport{{}, {}, true}), options);
}

}  // namespace

void AddIpamCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* ipam = app->add_subcommand("ipam", "which addresses of the rails are whose");
  ipam->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, Act act) {
    auto options = std::make_shared<IpamOptions>();
    CLI::App* command = ipam->add_subcommand(name, what);
    command->callback(
        [options, &root, status, act = std::move(act)] { *status = RunIpam(root, *options, act); });
    return std::pair(command, options);
  };
  const auto with_json = [](const auto& one) {
    one.first->add_flag("--json", one.second->json, "as JSON");
    return one;
  };
  const auto list = with_json(add("list", "held and resting addresses, with their holders", ListAddresses));
  list.first->add_option("--pool", list.second->pool, "only this subnet: 10.100.0.0/16");
  const auto show = with_json(add("show", "one address, or all of a container", ShowAddress));
  show.first->add_option("which", show.second->which, "address, or container id (or its beginning)")
      ->required();
  const auto check = with_json(
      add("check", "contradictions in the store, and addresses that nobody can have", CheckAddresses));
  check.first->footer("Exit status 1 when anything was found.");
  add("export", "all of it as JSON", Export);
  auto events_as_json = std::make_shared<bool>(false);
  CLI::App* events = ipam->add_subcommand(
      "events", "the latest 256: rests cut short, pools exhausted, quarantines, the store's file");
  events->add_flag("--json", *events_as_json, "as JSON");
  events->callback([events_as_json, &root, status] { *status = Events(root, *events_as_json); });
  AddIpamBlocksCommand(ipam, root, status);
  AddIpamImportCommand(ipam, root, status);
  const auto release = add("release", "lets a held address rest",
                           [&root](const AddressReport& report, const IpamOptions& options) {
                             const auto done = Release(root, report, options);
                             return done ? kDone : Complain(done.error(), kFailed);
                           });
  release.first->add_option("address", release.second->which, "10.100.0.17")->required();
  release.first->add_flag("--force", release.second->force, "also when it may be in use");
}

}  // namespace railhead::railctl
