#include "ipam/plugin/ipam_plugin.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "cni/fabric/call_permissions.h"
#include "cni/protocol/cni_result.h"
#include "ipam/plugin/fixed_addresses.h"
#include "ipam/plugin/ipam_config.h"
#include "ipam/store/store.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::ipam {
namespace {

// No container id and no interface of a container: ids start with a letter or digit.
constexpr const char* kNobody = "-";

AddressOwner OwnerOf(const CniRequest& request) {
  return {request.network, request.container_id, request.ifname};
}

std::string NameOf(const CniRequest& request, const std::string& ifname) {
  return "container " + request.container_id + ", interface " + ifname + ", network " + request.network;
}

// The result of the ADD before this CHECK; nullopt: the runtime did not send it.
Result<std::optional<CniResult>> PreviousResult(const CniRequest& request) {
  const auto document = RH_TRY(JsonDocument::Parse(request.config, "network configuration"));
  JsonReader reader = document.Root();
  const nlohmann::json* previous = reader.Raw("prevResult");
  RH_TRY(reader.status());
  if (previous == nullptr) return std::nullopt;
  return RH_TRY(ParseCniResult(previous->dump(), "network configuration: /prevResult"));
}

// The requests of an attachment, in the order of the plan.
std::vector<AddressRequest> RequestsOf(const AddressOwner& attachment, const IpamPlan& plan) {
  std::vector<AddressRequest> requests;
  requests.reserve(plan.addresses.size());
  for (const AddressPlan& address : plan.addresses) {
    AddressRequest request{LinkOwner(attachment, address.ifname), {}, address.fixed_address, plan.listed};
    request.mac = address.mac;
    for (const PoolChoice& choice : address.choices) request.pools.push_back(choice.pool);
    requests.push_back(std::move(request));
  }
  return requests;
}

// The pool of `held`, which was allocated for `asked`.
const PoolChoice& ChoiceOf(const AddressPlan& asked, const AddressRecord& held) {
  const auto found = std::ranges::find_if(
      asked.choices, [&](const PoolChoice& choice) { return choice.pool.name == held.pool; });
  return found == asked.choices.end() ? asked.choices.front() : *found;
}

// Whether the record is what the request asks for.
bool Answers(const AddressRequest& request, const AddressRecord& record) {
  if (record.owner != request.owner || (request.fixed_address && record.address != *request.fixed_address))
    return false;
  return std::ranges::any_of(request.pools, [&](const AddressPool& pool) {
    return pool.name == record.pool && pool.ranges.Contains(record.address);
  });
}

std::string NamesOf(const std::vector<AddressPool>& pools) {
  std::vector<std::string> names;
  names.reserve(pools.size());
  for (const AddressPool& pool : pools) names.push_back(pool.name);
  return Join(names, " or ");
}

Result<void> CheckOne(const CniRequest& request, const AddressRequest& address,
                      const std::vector<AddressRecord>& records, const std::optional<CniResult>& previous) {
  const auto held =
      std::ranges::find_if(records, [&](const AddressRecord& record) { return Answers(address, record); });
  if (held == records.end()) {
    return Fail(ErrorCode::kNotFound,
                (address.fixed_address ? address.fixed_address->ToString() : "no address") + " of " +
                    NamesOf(address.pools) + " is" + (address.fixed_address ? " not" : "") + " held by " +
                    NameOf(request, address.owner.ifname),
                "delete the container's network and add it again");
  }
  const bool in_previous = !previous || std::ranges::any_of(previous->ips, [&](const CniIp& ip) {
    return ip.address.address == held->address;
  });
  if (in_previous) return {};
  return Fail(ErrorCode::kConflict,
              held->address.ToString() + " is held by " + NameOf(request, address.owner.ifname) +
                  ", but prevResult does not have it",
              "delete the container's network and add it again");
}

// Addresses that `railhead` found in use by others before it gave up: `key` is inUse or inUseConfirmed. DEL
// has to work with any configuration: an unreadable key counts as empty.
std::set<IpAddress> AddressesOf(const std::string& config, const char* key) {
  std::set<IpAddress> addresses;
  const auto document = JsonDocument::Parse(config, "network configuration");
  if (!document) return addresses;
  JsonReader root = document->Root();
  auto ipam = root.Object("ipam");
  const auto texts = ipam ? ipam->Strings(key) : std::nullopt;
  if (!texts) return addresses;
  for (const std::string& text : *texts) {
    if (const auto address = IpAddress::Parse(text); address) addresses.insert(*address);
  }
  return addresses;
}

const AddressPool* PoolOf(const IpamPlan& plan, const AddressRecord& held) {
  for (const AddressPlan& address : plan.addresses) {
    for (const PoolChoice& choice : address.choices) {
      if (choice.pool.name == held.pool && choice.pool.ranges.Contains(held.address)) return &choice.pool;
    }
  }
  return nullptr;
}

// Quarantines the addresses that others use: briefly if found once, longer if found again. Skips an address
// that has left the configuration's pools: it is not allocated again anyway.
Result<void> QuarantineInUse(const Root& root, const CniRequest& request, AddressStore& store) {
  const auto in_use = AddressesOf(request.config, "inUse");
  if (in_use.empty()) return {};
  const auto plan = ResolvePools(request.config, request.args, root);
  if (!plan) return {};
  const auto confirmed = AddressesOf(request.config, "inUseConfirmed");
  const auto records = RH_TRY(store.Find(OwnerOf(request)));
  for (const AddressRecord& held : records) {
    const AddressPool* pool = in_use.contains(held.address) ? PoolOf(*plan, held) : nullptr;
    if (pool == nullptr) continue;
    const auto time = confirmed.contains(held.address) ? kDefaultQuarantine : kFirstQuarantine;
    RH_TRY(store.QuarantineWithin(*pool, held.owner, held.address, time));
  }
  return {};
}

// Whether the author of the network may request these settings. Below railhead the answer is already known;
// rail, links and vf are railhead's own words there. Below another plugin a network has no device, and so no
// rail of its own.
Result<void> RefuseUnpermitted(const Root& root, const CniRequest& request) {
  const auto document = RH_TRY(JsonDocument::Parse(request.config, "network configuration"));
  JsonReader reader = document.Root();
  if (reader.String("type") == "railhead") return {};
  const CallPermissions may = RH_TRY(ReadPermissions(root, request.network, request.args));
  const auto ipam = reader.Object("ipam");
  if (ipam && ipam->Has("rail")) RH_TRY(may.Require("rail", "/ipam/rail"));
  return may.RequireIpam(request.config, request.args);
}

}  // namespace

Result<std::string> IpamPlugin::Add(const CniRequest& request) {
  RH_TRY(RefuseUnpermitted(root_, request));
  const IpamPlan plan = RH_TRY(ResolvePools(request.config, request.args, root_));
  AddressStore store = RH_TRY(AddressStore::Open(root_));
  const auto held = RH_TRY(store.Allocate(RequestsOf(OwnerOf(request), plan)));

  CniResult result;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const AddressPlan& asked = plan.addresses[i];
    CniIp ip;
    const PoolChoice& choice = ChoiceOf(asked, held[i]);
    ip.address = {held[i].address, choice.pool.ranges.subnet().length};
    ip.gateway = choice.gateway;
    if (plan.listed) ip.interface = static_cast<int>(i);
    result.ips.push_back(ip);
    result.routes.insert(result.routes.end(), asked.routes.begin(), asked.routes.end());
  }
  result.ips.insert(result.ips.end(), plan.also.begin(), plan.also.end());
  result.dns = plan.dns;
  return CniResultJson(result, request.cni_version);
}

Result<void> IpamPlugin::Del(const CniRequest& request) {
  // No interface has such a name, but the owner of one link's address has (LinkOwner).
  if (request.ifname.find('/') != std::string::npos) return {};
  auto store = RH_TRY(AddressStore::OpenExisting(root_));
  if (!store) return {};
  RH_TRY(QuarantineInUse(root_, request, *store));
  RH_TRY(store->Release(OwnerOf(request)));
  return {};
}

Result<void> IpamPlugin::Check(const CniRequest& request) {
  RH_TRY(RefuseUnpermitted(root_, request));
  const IpamPlan plan = RH_TRY(ResolvePools(request.config, request.args, root_));
  const auto previous = RH_TRY(PreviousResult(request));
  std::vector<AddressRecord> records;
  if (const auto store = RH_TRY(AddressStore::OpenExisting(root_)); store) {
    records = RH_TRY(store->Find(OwnerOf(request)));
  }
  for (const AddressRequest& address : RequestsOf(OwnerOf(request), plan)) {
    RH_TRY(CheckOne(request, address, records, previous));
  }
  return {};
}

Result<void> IpamPlugin::Gc(const CniRequest& request, const std::vector<ValidAttachment>& valid) {
  auto store = RH_TRY(AddressStore::OpenExisting(root_));
  if (!store) return {};
  std::set<std::pair<std::string_view, std::string_view>> alive;
  for (const ValidAttachment& attachment : valid) alive.emplace(attachment.container_id, attachment.ifname);
  RH_TRY(store->ReleaseWhere([&](const AddressRecord& held) {
    return held.owner.network == request.network &&
           !alive.contains({held.owner.container, AttachmentIfname(held.owner)});
  }));
  return {};
}

Result<void> IpamPlugin::Status(const CniRequest& request) {
  auto able = CanAdd(request);
  if (able) return {};
  // STATUS reports one code for every reason: ADD cannot work now.
  able.error().code = ErrorCode::kUnavailable;
  return able;
}

Result<void> IpamPlugin::CanAdd(const CniRequest& request) {
  const IpamPlan plan = RH_TRY(ResolveIpam(request.config, request.args, root_));
  auto store = RH_TRY(AddressStore::OpenExisting(root_));
  if (!store) return AddressStore::CheckPlace(root_);
  auto requests = RequestsOf({request.network, kNobody, kNobody}, plan);
  // Ignores fixed addresses: one that a pod has, or that cools down, does not show whether the network works.
  // Nor does a part that has changed: it settles with time, counted from an ADD that a node which is not
  // ready would never get.
  for (AddressRequest& address : requests) {
    address.fixed_address.reset();
    for (AddressPool& pool : address.pools) pool.part.reset();
  }
  // An exhausted pool does not count: it is the state of one rail, and the DEL of a pod ends it.
  for (const AddressRequest& address : requests) {
    auto given = store->TryAllocate({address});
    if (!given && given.error().code != ErrorCode::kExhausted) return given;
  }
  return {};
}

}  // namespace railhead::ipam
