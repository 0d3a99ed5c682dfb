#include "ipam/store/import_state.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::ipam {
namespace {

constexpr std::size_t kMaxPools = std::size_t{64} << 20;

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

Result<ImportedAddress> ReadFileOfAddress(const std::string& path, const IpAddress& address,
                                          const std::string& network, const std::vector<IpPrefix>& subnets) {
  const auto subnet =
      std::ranges::find_if(subnets, [&](const IpPrefix& one) { return one.Contains(address); });
  if (subnet == subnets.end())
    return Fail(ErrorCode::kInvalid, path + ": is in none of the subnets given",
                "name its subnet, too: --subnet");
  const auto content = RH_TRY(ReadRootFile(path));
  const auto lines = Split(content.value_or(""), '\n');
  const std::string container = lines.empty() ? "" : Trimmed(lines[0]);
  if (container.empty()) {
    return Fail(ErrorCode::kMalformed, path + ": names no container",
                "a full disk or a crash makes files of host-local empty: remove the file if no "
                "pod has the address");
  }
  ImportedAddress imported;
  imported.address = address;
  imported.subnet = subnet->Network();
  // Older ones wrote the container alone.
  imported.owner = {network, container,
                    lines.size() > 1 && !Trimmed(lines[1]).empty() ? Trimmed(lines[1]) : "eth0"};
  return imported;
}

// "10.0.0.5/24" and "10.0.0.10-10.0.0.20/24" are ranges, too; offsets count from the network's address.
std::optional<IpPrefix> SubnetOf(const std::string& range) {
  const auto dash = range.find('-');
  const auto prefix = IpPrefix::Parse(dash == std::string::npos ? range : range.substr(dash + 1));
  return prefix ? std::optional(prefix->Network()) : std::nullopt;
}

void ReadAllocations(JsonReader& spec, const IpPrefix& subnet, const std::string& network,
                     std::vector<ImportedAddress>* addresses) {
  auto allocations = spec.Object("allocations");
  if (!allocations) return;
  for (const std::string& key : allocations->Keys()) {
    const auto offset = ParseInt(key);
    auto allocation = allocations->Object(key);
    if (!offset || *offset < 0 || !allocation) {
      allocations->Fail(key, "is not an offset with an allocation",
                        "an IPPool of whereabouts has numbers here");
      continue;
    }
    ImportedAddress imported;
    imported.address = subnet.address.Plus(static_cast<std::uint64_t>(*offset));
    imported.subnet = subnet;
    imported.owner = {network, Trimmed(allocation->RequiredString("id")),
                      allocation->String("ifname").value_or("net1")};
    imported.pod = allocation->String("podref").value_or("");
    if (!subnet.Contains(imported.address)) allocations->Fail(key, "is beyond " + subnet.ToString());
    addresses->push_back(std::move(imported));
  }
}

void ReadPool(JsonReader& pool, const std::string& network, std::vector<ImportedAddress>* addresses) {
  auto spec = pool.Object("spec");
  if (!spec) return pool.Fail("spec", "is missing", "give an IPPool of whereabouts, or a list of them");
  const std::string range = spec->RequiredString("range");
  const auto subnet = SubnetOf(range);
  if (!subnet) return spec->Fail("range", "'" + range + "' is not a range");
  ReadAllocations(*spec, *subnet, network, addresses);
}

Result<AddressRequest> RequestFor(const ImportedAddress& imported) {
  RangeSpec spec;
  spec.subnet = imported.subnet;
  AddressRequest request;
  request.owner = imported.owner;
  auto ranges = RH_TRY(RangeSet::Make(spec));
  AddressPool pool{imported.subnet.ToString(), std::move(ranges), {}};
  if (!pool.ranges.Contains(imported.address))
    return Fail(ErrorCode::kInvalid, imported.address.ToString() + " is not a host address in " + pool.name);
  request.pools.push_back(std::move(pool));
  request.fixed_address = imported.address;
  return request;
}

Result<void> ImportOne(AddressStore& store, const ImportedAddress& imported, bool here,
                       std::chrono::seconds away) {
  const AddressRequest request = RH_TRY(RequestFor(imported));
  RH_TRY(store.Allocate({request}));
  if (!here) RH_TRY(store.Quarantine(imported.owner, imported.address, away));
  return {};
}

}  // namespace

Result<std::vector<ImportedAddress>> ReadHostLocal(const std::string& directory, const std::string& network,
                                                   const std::vector<IpPrefix>& subnets) {
  const auto names = RH_TRY(ListDirectory(directory));
  if (!names)
    return Fail(ErrorCode::kNotFound, "reading host-local's state: no directory " + directory,
                "host-local's dataDir and the network's name");
  std::vector<ImportedAddress> addresses;
  for (const std::string& name : *names) {
    // Skips "last_reserved_ip.0" and "lock", which are not addresses.
    const auto address = IpAddress::Parse(name);
    if (!address) continue;
    const std::string path = std::string(directory).append("/").append(name);
    addresses.push_back(RH_TRY(ReadFileOfAddress(path, *address, network, subnets)));
  }
  return addresses;
}

Result<std::vector<ImportedAddress>> ReadWhereabouts(const std::string& text, const std::string& what,
                                                     const std::string& network) {
  const auto document = RH_TRY(JsonDocument::Parse(text, what, kMaxPools));
  JsonReader root = document.Root();
  std::vector<ImportedAddress> addresses;
  if (root.Has("items")) {
    for (JsonReader& pool : root.Objects("items")) ReadPool(pool, network, &addresses);
  } else {
    ReadPool(root, network, &addresses);
  }
  RH_TRY(root.status());
  return addresses;
}

ImportOutcome Import(AddressStore& store, const std::vector<ImportedAddress>& addresses,
                     const std::function<bool(const ImportedAddress&)>& here, std::chrono::seconds away) {
  ImportOutcome outcome;
  std::set<std::pair<std::string, IpAddress>> put_away;
  const auto before = store.List().value_or(std::vector<AddressRecord>{});
  for (const AddressRecord& record : before) {
    if (record.state == AddressState::kQuarantined) put_away.emplace(record.pool, record.address);
  }
  for (const ImportedAddress& imported : addresses) {
    const bool is_here = here(imported);
    // By an import before this one.
    const bool known = !is_here && put_away.contains({imported.subnet.ToString(), imported.address});
    auto done = known ? Result<void>() : ImportOne(store, imported, is_here, away);
    if (!done) {
      outcome.refused.push_back(Wrap(std::move(done.error()), "importing " + imported.address.ToString()));
    } else {
      ++(is_here ? outcome.held : outcome.kept_away);
    }
  }
  return outcome;
}

}  // namespace railhead::ipam
