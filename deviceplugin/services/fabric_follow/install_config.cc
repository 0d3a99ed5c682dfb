#include "deviceplugin/services/fabric_follow/install_config.h"

#include <algorithm>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/fabric/fabric_base.h"
#include "cni/fabric/node_index.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "deviceplugin/services/fabric_follow/fabric_errors.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead::fabric_follow {
namespace {

// Adds the file and its errors. False: it does not exist.
template <typename ErrorsIn>
Result<bool> AddFile(const std::string& directory, const char* name, const ErrorsIn& errors_in,
                     WantedConfig* wanted) {
  const std::string path = directory + "/" + name;
  // Whose file this may be, the caller decides: an operator's own is copied, too.
  auto content = RH_TRY(ReadFile(path));
  if (!content) return false;
  for (Error& error : errors_in(*content, path)) wanted->errors.push_back(std::move(error));
  wanted->files.push_back({name, std::move(*content)});
  return true;
}

void TakeFabricOf(const std::string& node, const std::string& path, WantedConfig* wanted) {
  install::FileToInstall& fabric = wanted->files.front();
  const auto base = FabricBase::Parse(fabric.content, path);
  if (!base) return wanted->errors.push_back(base.error());
  if (base->fabric().node_groups.empty()) return;
  if (node.empty()) {
    return wanted->errors.push_back(
        {ErrorCode::kInvalid,
         path + ": /nodeGroups: which groups this node has is not known without its name",
         "railctl doctor --only node.files; or give railctl install config --node-name", 0});
  }
  wanted->errors = ErrorsOfNodes(*base, {node});
  if (!wanted->errors.empty()) return;
  if (auto text = base->TextOf(node)) {
    fabric.content = *std::move(text);
  } else {
    wanted->errors.push_back(text.error());
  }
}

std::vector<Error> ErrorsInTopology(const std::string& text, const std::string& what) {
  const auto parsed = topology::ParseTopologyConfig(text, what);
  return parsed ? std::vector<Error>{} : std::vector<Error>{parsed.error()};
}

std::string AddressOf(const Root& root, const std::string& pf) {
  if (const auto address = PciAddress::Parse(pf)) return address->ToString();
  const auto found = PciAddressOfNetdev(root, pf);
  return found && *found ? (*found)->ToString() : pf;
}

// The addresses of a rail's PFs. A PF that this node lacks stays as it is written.
std::vector<std::string> PfAddresses(const Root& root, const std::vector<PciDevice>& in_order,
                                     const Rail& rail) {
  const auto place = static_cast<std::size_t>(rail.position.value_or(-1));
  if (place < in_order.size()) return {in_order[place].address.ToString()};
  auto pfs = PfsAsWritten(rail);
  for (std::string& pf : pfs) pf = AddressOf(root, pf);
  return pfs;
}

// The index that the present fabric gives the node; nullopt: none that may be used.
std::optional<int> IndexNow(const Root& root, const std::string& present) {
  const auto fabric = ParseFabric(present, kFabricName);
  const auto node = NodeName(root);
  if (!fabric || !node) return std::nullopt;
  return IndexOfThisNode(root, *fabric, *node).value_or(std::nullopt);
}

}  // namespace

Result<WantedConfig> ReadWanted(const std::string& directory, const std::string& node) {
  WantedConfig wanted;
  if (!RH_TRY(AddFile(directory, kFabricName, ErrorsInFabric, &wanted))) {
    wanted.errors.push_back({ErrorCode::kNotFound, "no such file: " + directory + "/" + kFabricName,
                             "`railctl fabric suggest` proposes one", 0});
  }
  RH_TRY(AddFile(directory, kTopologyName, ErrorsInTopology, &wanted));
  if (wanted.errors.empty()) TakeFabricOf(node, directory + "/" + kFabricName, &wanted);
  return wanted;
}

Result<std::vector<PendingChange>> KeepBusyRails(const Root& root, const install::InstallDirectory& directory,
                                                 std::vector<install::FileToInstall>* files) {
  const auto fabric = std::ranges::find(*files, kFabricName, &install::FileToInstall::name);
  if (fabric == files->end()) return std::vector<PendingChange>{};
  const auto file = RH_TRY(ReadFile(directory.PathOf(kFabricName)));
  if (!file || *file == fabric->content) return std::vector<PendingChange>{};
  const auto base = FabricBase::Parse(*file, kFabricName);
  const auto present =
      base ? base->TextOf(NodeName(root).value_or("")) : Result<std::string>(Fail(base.error()));
  if (!present) return std::vector<PendingChange>{};
  const JournalScan scan = RH_TRY(Journal(root).Scan());
  const auto pfs = RH_TRY(ListRailPfs(root));
  RailUse use = RailsInUse(scan);
  use.index = IndexNow(root, *present);
  Composition composition = RH_TRY(Compose(*present, fabric->content, use,
                                           [&](const Rail& rail) { return PfAddresses(root, pfs, rail); }));
  // The objects that services read name rails, too.
  if (composition.text != fabric->content) {
    auto errors = ErrorsInFabric(composition.text, "the fabric that keeps rails in use");
    if (!errors.empty())
      return Fail(ConflictWithUse(std::move(errors.front()), RailsOf(composition.pending)));
  }
  fabric->content = std::move(composition.text);
  return std::move(composition.pending);
}

}  // namespace railhead::fabric_follow
