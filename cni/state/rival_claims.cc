#include "cni/state/rival_claims.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cni/protocol/pod_args.h"
#include "cni/state/attach_log.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

using Json = nlohmann::ordered_json;

// nullopt: a line of another kind, or a damaged one.
std::optional<RivalClaim> ParseRivalClaim(const std::string& line) {
  const auto document = JsonDocument::Parse(line, "attach log");
  if (!document) return std::nullopt;
  JsonReader reader = document->Root();
  const auto text = reader.String("claimed");
  if (!text) return std::nullopt;
  const auto address = IpAddress::Parse(*text);
  const auto mac = MacAddress::Parse(reader.RequiredString("by"));
  const auto source = MacAddress::Parse(reader.RequiredString("source"));
  RivalClaim claim;
  claim.key = {reader.RequiredString("network"), reader.RequiredString("containerId"),
               reader.RequiredString("ifname")};
  claim.device = reader.RequiredString("device");
  claim.boottime = std::chrono::milliseconds(reader.Int("boottimeMs", 0, INT64_MAX).value_or(0));
  claim.ignored = reader.Bool("ignored").value_or(false);
  if (!reader.status() || !address || !mac || !source) return std::nullopt;
  claim.address = *address;
  claim.mac = *mac;
  claim.source = *source;
  return claim;
}

bool HasMac(const AttachedLink& link, const MacAddress& mac) {
  return link.host_mac == mac || link.vf_change.mac == mac;
}

// "": no pod of this node has the MAC, or its runtime did not name it.
std::string PodWith(const JournalScan& journal, const MacAddress& mac) {
  for (const JournalEntry& entry : journal.entries) {
    const bool has = std::any_of(entry.links.begin(), entry.links.end(),
                                 [&](const AttachedLink& link) { return HasMac(link, mac); });
    if (has) return PodName(entry.cni_args);
  }
  return "";
}

}  // namespace

std::chrono::milliseconds BoottimeNow() {
  timespec time{};
  (void)::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::milliseconds(time.tv_nsec / 1'000'000);
}

void LogRivalClaim(const Root& root, const RivalClaim& claim) {
  Json json;
  json["time"] = static_cast<std::int64_t>(std::time(nullptr));
  json["boottimeMs"] = claim.boottime.count();
  json["network"] = claim.key.network;
  json["containerId"] = claim.key.container_id;
  json["ifname"] = claim.key.ifname;
  json["device"] = claim.device;
  json["claimed"] = claim.address.ToString();
  json["by"] = claim.mac.ToString();
  json["source"] = claim.source.ToString();
  json["ignored"] = claim.ignored;
  AppendToAttachLog(root, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string Claimant::ToString() const {
  const std::string of = pod.empty() ? " (no pod of this node)" : " (pod " + pod + ")";
  return source.ToString() + of + " claims " + std::to_string(addresses.size()) + " addresses, " +
         (addresses.empty() ? "none" : addresses.begin()->ToString()) + " among them";
}

Result<std::vector<Claimant>> ListClaimants(const Root& root, std::chrono::milliseconds since) {
  std::map<MacAddress, Claimant> by_source;
  for (const RivalClaim& claim : RH_TRY(ReadRivalClaims(root))) {
    if (!claim.ignored || claim.boottime <= since) continue;
    Claimant& one = by_source[claim.source];
    one.source = claim.source;
    one.addresses.insert(claim.address);
    ++one.claims;
    one.latest = std::max(one.latest, claim.boottime);
  }
  std::vector<Claimant> claimants;
  if (by_source.empty()) return claimants;
  const JournalScan journal = RH_TRY(Journal(root).Scan());
  for (auto& [source, one] : by_source) {
    one.pod = PodWith(journal, source);
    claimants.push_back(std::move(one));
  }
  return claimants;
}

Result<std::vector<RivalClaim>> ReadRivalClaims(const Root& root) {
  std::vector<RivalClaim> claims;
  for (const char* suffix : {".1", ""}) {
    const auto text = RH_TRY(ReadFile(paths::AttachLog(root) + suffix));
    for (const auto& line : Split(text.value_or(""), '\n')) {
      if (auto claim = line.empty() ? std::nullopt : ParseRivalClaim(line))
        claims.push_back(*std::move(claim));
    }
  }
  return claims;
}

}  // namespace railhead
