// railctl ipam: the node's addresses.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/reconcile/address_facts.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/address_report.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/print.h"
#include "deviceplugin/tools/railctl/rail_filter.h"
#include "deviceplugin/tools/railctl/subject.h"
#include "ipam/store/store.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

struct EventLine {
  ipam::AddressEvent event;

  static void List(auto& f) {
    f.Part(&EventLine::event, [](auto& part) {
      using Event = ipam::AddressEvent;
      part("number", &Event::number, {.column = "NUMBER", .wide = kWide});
      part.Output("time", [](const Event& it) { return FormatTime(WallTime(it.wall_seconds)); },
                  {.column = "TIME"});
      part.Output("event", [](const Event& it) { return NameOf(it.kind); }, {.column = "EVENT"});
      part("count", &Event::count);
      part("pool", &Event::pool, kSparseField);
      part("address", &Event::address);
      part.Output(
          "container", [](const Event& it) { return it.owner.container; }, kSparseField);
      part.Column("WHAT", &reconcile::Sentence);
    });
  }
};

struct IpamOptions {
  Output output;
  RailFilter rail;
  bool force = false;
  std::string pool;
  std::string which;  // an address, or what has addresses
};

// The rails' use, and the addresses.
void PrintAddresses(const Output& output, const AddressList& list) {
  if (!output.is_text()) return output.PrintData(ToJson(list));
  if (!list.rails.empty()) {
    output.PrintTable(list.rails);
    for (const RailAddresses& rail : list.rails) {
      if (!rail.because.empty())
        (void)std::printf("note: %s: %s\n", OneLine(rail.rail).c_str(), OneLine(rail.because).c_str());
    }
    (void)std::printf("\n");
  }
  output.PrintTable(list.addresses);
}

int ListAddresses(const Root& root, const AddressReport& report, const IpamOptions& options) {
  const auto rails = RailsToFilterBy(root, options.rail);
  if (!rails) return Complain(rails.error(), kFailed);
  AddressList list{{}, report.addresses};
  // The store's addresses are listed without a fabric, too.
  if (auto of_rails = AddressesOfRails(root, report)) {
    list.rails = *std::move(of_rails);
  } else {
    (void)Complain(of_rails.error(), kFailed);
  }
  if (*rails) {
    options.rail.Keep(&list.rails, &RailAddresses::rail);
    options.rail.Keep(&list.addresses,
                      [&](const KnownAddress& known) { return (*rails)->OfAddress(known.record.address); });
  }
  if (!options.pool.empty()) {
    std::erase_if(list.rails, [&](const RailAddresses& rail) { return rail.pool != options.pool; });
    std::erase_if(list.addresses,
                  [&](const KnownAddress& known) { return known.record.pool != options.pool; });
  }
  PrintAddresses(options.output, list);
  return kDone;
}

int ShowAddress(const Root& root, const AddressReport& report, const IpamOptions& options) {
  const auto subject = FindSubject(root, options.which);
  if (!subject) return Complain(subject.error(), kFailed);
  std::vector<KnownAddress> chosen = report.addresses;
  std::erase_if(chosen, [&](const KnownAddress& known) {
    return subject->address ? known.record.address != *subject->address
                            : !Contains(subject->containers, known.record.owner.container);
  });
  if (chosen.empty()) {
    return Complain({ErrorCode::kNotFound, "the store has no address of '" + options.which + "'",
                     "it has no free addresses: see railctl describe " + options.which, 0},
                    kFailed);
  }
  options.output.PrintList("addresses", chosen);
  return kDone;
}

std::string TextOf(const AddressReport& report) {
  std::string text;
  for (const std::string& damage : report.damage) text.append("damaged: ").append(damage).append("\n");
  const auto leaked = report.Leaked();
  for (const KnownAddress& known : leaked) {
    const ipam::AddressRecord& record = known.record;
    text.append("leaked: ").append(record.address.ToString()).append(" of ").append(record.owner.network);
    text.append(", container ").append(record.owner.container).append(": ").append(known.leak).append("\n");
  }
  if (!leaked.empty()) text += "railheadd releases leaked addresses; by hand: railctl ipam release ADDRESS\n";
  if (!report.complete) text += "no runtime keeps results here: leaks cannot be found\n";
  if (report.damage.empty() && leaked.empty())
    text += std::to_string(report.addresses.size()) + " addresses, no problem found\n";
  return text;
}

int CheckAddresses(const Root& /*root*/, const AddressReport& report, const IpamOptions& options) {
  options.output.Print(report, [](const AddressReport& it) { return TextOf(it); });
  return report.damage.empty() && report.Leaked().empty() ? kDone : kFailed;
}

int Export(const Root& /*root*/, const AddressReport& report, const IpamOptions& /*options*/) {
  Output().PrintData({{"addresses", ToJson(report.addresses)}});
  return kDone;
}

int Events(const Root& root, const Output& output) {
  const auto facts = reconcile::ReadAddressFacts(root, 0);
  if (!facts) return Complain(facts.error(), kFailed);
  std::vector<EventLine> lines;
  for (const ipam::AddressEvent& event : facts->events) lines.push_back({event});
  output.PrintList("events", lines);
  return kDone;
}

// An address that is in use is released only by force: the next pod would get it.
Result<void> Release(const Root& root, const AddressReport& report, const IpamOptions& options) {
  const auto known = std::ranges::find_if(report.addresses, [&](const KnownAddress& one) {
    return one.record.address.ToString() == options.which && one.record.state == ipam::AddressState::kHeld;
  });
  if (known == report.addresses.end()) {
    return Fail(ErrorCode::kNotFound, "no container holds " + options.which,
                "see railctl ipam list for held addresses");
  }
  if (known->leak.empty() && !options.force) {
    return Fail(ErrorCode::kBusy,
                options.which + " may be in use by container " + known->record.owner.container +
                    (known->pod.empty() ? std::string() : ", pod " + known->pod),
                "delete the pod; if you know that it is gone, use --force");
  }
  auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
  const ipam::AddressRecord& record = known->record;
  // Only if the holder is still the same: another one may have the address by now.
  const auto released = RH_TRY(store->ReleaseWhere([&](const ipam::AddressRecord& held) {
    return held.pool == record.pool && held.address == record.address && held.owner == record.owner;
  }));
  if (released.empty())
    return Fail(ErrorCode::kConflict, "another process has just released " + options.which);
  (void)std::printf("released %s; its reuse delay begins now\n", options.which.c_str());
  return {};
}

using Act = std::function<int(const Root& root, const AddressReport& report, const IpamOptions& options)>;

int RunIpam(const Root& root, const IpamOptions& options, const Act& act) {
  const auto report = ReportAddresses(root);
  if (!report) return Complain(report.error(), kFailed);
  // No store: nothing is held.
  return act(root, report->value_or(AddressReport{{}, {}, true}), options);
}

void AddIpamHelp(CLI::App* list, CLI::App* show, CLI::App* check, CLI::App* all, CLI::App* events) {
  help::Set(
      list,
      {.more = "Of each rail: this node's range, and how many of its addresses are held, cooling down, in "
               "quarantine and free.",
       .examples = {{"railctl ipam list --rail rail0", "the addresses of one rail, and how many are free"},
                    {"railctl ipam list -w -o json", "a line of JSON whenever one changes"}},
       .columns = "of rails " + ColumnsOf<RailAddresses>() + "; of addresses " + ColumnsOf<KnownAddress>()});
  help::Set(show,
            {.examples = {{"railctl ipam show 10.100.0.17", "the container that holds or held this address"},
                          {"railctl ipam show 3f2a", "the addresses of the container whose id begins so"}},
             .columns = ColumnsOf<KnownAddress>(),
             .statuses = {{kFailed, "the store does not have it"}}});
  help::Set(check, {.examples = {{"railctl ipam check", "the errors of the store, in sentences"},
                                 {"railctl ipam check -o json", "the leaked addresses as JSON"}},
                    .statuses = {{kFailed, "the store is damaged, or an address is leaked"}}});
  help::Set(all, {.examples = {{"railctl ipam export >addresses.json", "all addresses, to keep"},
                               {"railctl ipam export | jq '.addresses | length'", "how many there are"}}});
  help::Set(events, {.examples = {{"railctl ipam events", "a line for each event, oldest first"},
                                  {"railctl ipam events -o wide", "with the numbers of the events"}},
                     .columns = ColumnsOf<EventLine>()});
}

}  // namespace

void AddIpamCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* ipam = app->add_subcommand("ipam", "Show the rails' addresses on this node, and their holders");
  ipam->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, Act act) {
    auto options = std::make_shared<IpamOptions>();
    CLI::App* command = ipam->add_subcommand(name, what);
    command->callback([options, &root, status, act = std::move(act)] {
      *status = options->output.Watched([&] { return RunIpam(root, *options, act); });
    });
    return std::pair(command, options);
  };
  const auto with_output = [](const auto& one) {
    one.second->output.AddTo(one.first);
    return one;
  };
  const auto list = with_output(
      add("list", "List held and released addresses with their holders, and what each rail has left",
          ListAddresses));
  list.first->add_option("--pool", list.second->pool, "only this subnet: 10.100.0.0/16");
  list.second->rail.AddTo(list.first);
  list.second->output.AddWatchTo(list.first);
  const auto show =
      with_output(add("show", "Show one address, or all of a pod, container or device", ShowAddress));
  show.first
      ->add_option("WHAT", show.second->which,
                   "address, NAMESPACE/POD, pod UID, device, or container id or its beginning")
      ->required();
  const auto check =
      with_output(add("check", "Find contradictions in the store, and leaked addresses", CheckAddresses));
  const auto all = add("export", "Print all addresses as JSON", Export);
  auto output = std::make_shared<Output>();
  CLI::App* events = ipam->add_subcommand(
      "events",
      "List the latest 256: early reuses, exhausted pools, quarantines, new boots, the store's file");
  output->AddTo(events);
  AddIpamHelp(list.first, show.first, check.first, all.first, events);
  events->callback([output, &root, status] { *status = Events(root, *output); });
  AddIpamImportCommand(ipam, root, status);
  const auto release = add("release", "Release a held address; its reuse delay begins",
                           [](const Root& of, const AddressReport& report, const IpamOptions& options) {
                             const auto done = Release(of, report, options);
                             return done ? kDone : Complain(done.error(), kFailed);
                           });
  release.first->add_option("ADDRESS", release.second->which, "10.100.0.17")->required();
  release.first->add_flag("--force", release.second->force, "also when it may be in use");
  help::Set(
      release.first,
      {.examples = {{"railctl ipam release 10.100.0.17", "an address that railctl ipam check calls leaked"},
                    {"railctl ipam release 10.100.0.17 --force", "one whose pod you know to be gone"}},
       .statuses = {{kFailed, "no container holds it, or it may be in use"}}});
}

}  // namespace railhead::railctl
