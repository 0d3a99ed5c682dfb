#include "deviceplugin/services/fabric_follow/compose.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cni/fabric/fabric_shape.h"
#include "cni/protocol/cni_args.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead::fabric_follow {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPresent = "the present fabric";
constexpr const char* kWanted = "the wanted fabric";
const std::string kUnreadable = "the unreadable attachment ";
constexpr std::size_t kShownContainer = 12;

template <typename T>
const T* FindIn(const std::vector<T>& list, const std::string& name, std::string T::*key) {
  const auto found = std::ranges::find(list, name, key);
  return found == list.end() ? nullptr : &*found;
}

const Json* FindIn(const Json& object, const char* list, const char* key, const std::string& name) {
  const auto all = object.find(list);
  if (all == object.end()) return nullptr;
  for (const Json& one : *all) {
    if (one.value(key, std::string()) == name) return &one;
  }
  return nullptr;
}

// null is as if it were absent.
bool IsWritten(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

// Only new pods and railheadd itself follow them. By another nodeBlock the pods' addresses may be another
// node's.
bool IsForNewPodsOnly(const std::string& key) {
  return Contains(std::vector<std::string>{"exclude", "expectedSwitches", "fabricSubnets", "index",
                                           "nodeRanges", "probeAddresses"},
                  key);
}

bool IsKeyChanged(const Json& before, const Json& after, const std::string& key) {
  const auto old_value = before.find(key);
  const auto new_value = after.find(key);
  if (old_value == before.end() || new_value == after.end())
    return (old_value == before.end()) != (new_value == after.end());
  return *old_value != *new_value;
}

std::optional<IndexRange> IndicesOf(const Fabric& fabric) {
  return fabric.of_node ? fabric.of_node->indices : std::nullopt;
}

// One composition. Each fabric is there as people write it and as it is read, with what its writer left out.
class Composer {
 public:
  Composer(const Fabric& present, const Fabric& wanted, Json present_text, Json wanted_text,
           const RailUse& use, const PfsOf& pfs_of)
      : present_(present),
        wanted_(wanted),
        present_text_(std::move(present_text)),
        text_(std::move(wanted_text)),
        use_(use),
        pfs_of_(pfs_of) {}

  Result<std::vector<PendingChange>> Run() {
    for (const Rail& rail : present_.rails) KeepIfBusy(rail);
    RH_TRY(RefuseSharedPfs());
    KeepTables();
    KeepRdmaMode();
    for (const Pool& pool : present_.pools) KeepIds(pool);
    return std::move(pending_);
  }

  [[nodiscard]] bool changed() const { return changed_; }
  [[nodiscard]] const Json& text() const { return text_; }

 private:
  [[nodiscard]] bool Matters(const Rail& before, const Rail& after) const {
    const Json* written = FindIn(text_, "rails", "name", after.name);
    return ChangesDevices(before, after, written == nullptr || IsWritten(*written, "table"), pfs_of_);
  }

  void KeepIfBusy(const Rail& rail) {
    const auto pods = use_.Of(rail.name);
    const Rail* after = wanted_.FindRail(rail.name);
    if (pods.empty() || (after != nullptr && !Matters(rail, *after))) return;
    const Json* written = FindIn(present_text_, "rails", "name", rail.name);
    if (written == nullptr) return;
    Json kept = *written;
    if (rail.UsesIndex() && !rail.index && use_.index && IndicesOf(present_) != IndicesOf(wanted_))
      kept["index"] = *use_.index;
    // Where its new pods find other nodes is no part of what its pods have.
    if (const Json* next = FindIn(text_, "rails", "name", rail.name)) {
      kept.erase("fabricSubnets");
      if (IsWritten(*next, "fabricSubnets")) kept["fabricSubnets"] = (*next)["fabricSubnets"];
    }
    // A fabric without groups is no node's, and no rail of it has an index.
    if (IsWritten(kept, "index") && !IsWritten(text_, "node")) text_["node"] = present_text_["node"];
    Json& rails = text_["rails"];
    const auto place =
        std::ranges::find_if(rails, [&](const Json& one) { return one.value("name", "") == rail.name; });
    if (place != rails.end()) {
      *place = std::move(kept);
    } else {
      rails.push_back(std::move(kept));
    }
    kept_.insert(rail.name);
    changed_ = true;
    pending_.push_back({PendingKind::kRail,
                        rail.name,
                        after == nullptr ? PendingWord::kRemoved : PendingWord::kChanged,
                        {rail.name},
                        pods});
  }

  // The first of two rails with one PF would get it, whichever pods have it.
  [[nodiscard]] Result<void> RefuseSharedPfs() const {
    for (const std::string& name : kept_) {
      const Rail& kept = *present_.FindRail(name);
      for (const Rail& other : wanted_.rails) {
        if (kept_.contains(other.name) || !MovesTo(kept, other)) continue;
        return Fail(ErrorCode::kConflict,
                    "rail '" + other.name + "' would get the PF of rail '" + name + "', which is in use",
                    "drain it: railctl drain " + name);
      }
    }
    return {};
  }

  [[nodiscard]] bool MovesTo(const Rail& kept, const Rail& other) const {
    const Rail* before = present_.FindRail(other.name);
    const auto others = pfs_of_(other);
    if (before != nullptr && pfs_of_(*before) == others) return false;
    return std::ranges::any_of(pfs_of_(kept), [&](const std::string& pf) { return Contains(others, pf); });
  }

  // Busy rails keep their tables. Where that gives two rails one table, the one that states none gets
  // another.
  void KeepTables() {
    std::set<std::uint32_t> taken;
    Json& rails = text_["rails"];
    const auto take = [&](Json& rail, std::size_t at, std::uint32_t table) {
      taken.insert(table);
      if (table == kFirstRailTable + at || IsWritten(rail, "table")) return;
      rail["table"] = table;
      changed_ = true;
    };
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < rails.size(); ++i) {
      const std::string name = rails[i].value("name", "");
      const Rail* before = present_.FindRail(name);
      if (IsWritten(rails[i], "table")) {
        taken.insert(rails[i]["table"].get<std::uint32_t>());
      } else if (before != nullptr && !use_.Of(name).empty()) {
        take(rails[i], i, before->table);
      } else {
        open.push_back(i);
      }
    }
    for (const std::size_t i : open) {
      auto table = static_cast<std::uint32_t>(kFirstRailTable + i);
      // 253 to 255 are the kernel's.
      for (std::uint32_t next = kFirstRailTable; taken.contains(table); ++next) {
        if (next < 253 || next > 255) table = next;
      }
      take(rails[i], i, table);
    }
  }

  void KeepRdmaMode() {
    if (present_.rdma_exclusive == wanted_.rdma_exclusive) return;
    PendingChange change{PendingKind::kRdmaMode, "rdmaMode", PendingWord::kChanged, {}, {}};
    for (const Rail& rail : present_.rails) AddUse(rail.name, &change);
    if (change.rails.empty()) return;
    if (IsWritten(present_text_, "rdmaMode")) {
      text_["rdmaMode"] = present_text_["rdmaMode"];
    } else {
      text_.erase("rdmaMode");
    }
    changed_ = true;
    pending_.push_back(std::move(change));
  }

  void KeepIds(const Pool& before) {
    const Pool* after = FindIn(wanted_.pools, before.resource, &Pool::resource);
    if (after == nullptr) return;
    const Json old_keys = ToJson(before);
    const Json new_keys = ToJson(*after);
    PendingChange change{PendingKind::kPool, before.resource, PendingWord::kChanged, {}, {}};
    for (const std::string& rail : before.rails) AddUse(rail, &change);
    if (change.rails.empty()) return;
    std::vector<std::string> keys;
    for (const auto& [key, value] : old_keys.items()) {
      if (ChangesIds(key) && IsKeyChanged(old_keys, new_keys, key)) keys.push_back(key);
    }
    if (keys.empty()) return;
    // The default pool, which nobody has written.
    if (!IsWritten(text_, "pools") || text_["pools"].empty())
      text_["pools"] = Json::array({Json::object({{"resource", before.resource}})});
    for (Json& pool : text_["pools"]) {
      if (pool.value("resource", "") != before.resource) continue;
      for (const std::string& key : keys) pool[key] = old_keys[key];
      KeepRails(change.rails, *after, &pool);
    }
    changed_ = true;
    pending_.push_back(std::move(change));
  }

  // Without a busy rail the pool would not be in use with the next composition, and take its new ids.
  // One without `rails` has all of them.
  static void KeepRails(const std::set<std::string>& busy, const Pool& after, Json* pool) {
    if (!IsWritten(*pool, "rails")) return;
    std::vector<std::string> rails = after.rails;
    for (const std::string& rail : busy) {
      if (!Contains(rails, rail)) rails.push_back(rail);
    }
    if (rails != after.rails) (*pool)["rails"] = rails;
  }

  void AddUse(const std::string& rail, PendingChange* change) const {
    const auto pods = use_.Of(rail);
    if (pods.empty()) return;
    change->rails.insert(rail);
    change->pods.insert(pods.begin(), pods.end());
  }

  const Fabric& present_;
  const Fabric& wanted_;
  const Json present_text_;
  Json text_;
  const RailUse& use_;
  const PfsOf& pfs_of_;
  std::set<std::string> kept_;
  std::vector<PendingChange> pending_;
  bool changed_ = false;
};

}  // namespace

bool ChangesDevices(const Rail& before, const Rail& after, bool states_table, const PfsOf& pfs_of) {
  const Json old_keys = ToJson(before);
  const Json new_keys = ToJson(after);
  for (const Json* keys : {&old_keys, &new_keys}) {
    for (const auto& [key, value] : keys->items()) {
      if ((key == "table" && !states_table) || IsForNewPodsOnly(key)) continue;
      if (!IsKeyChanged(old_keys, new_keys, key)) continue;
      if (key != "pf" || pfs_of(before) != pfs_of(after)) return true;
    }
  }
  return false;
}

bool ChangesIds(const std::string& key) {
  return key == "binding" || key == "device";
}

std::string HolderName(const std::string& pod, const std::string& container) {
  return pod.empty() ? "container " + container.substr(0, kShownContainer) : pod;
}

std::set<std::string> RailUse::Of(const std::string& rail) const {
  std::set<std::string> all = unreadable;
  if (const auto found = pods.find(rail); found != pods.end())
    all.insert(found->second.begin(), found->second.end());
  return all;
}

RailUse RailsInUse(const JournalScan& scan) {
  RailUse use;
  for (const JournalEntry& entry : scan.entries) {
    if (IsReset(entry)) continue;
    const std::string holder = HolderName(PodName(entry.cni_args), entry.key.container_id);
    for (const AttachedDevice& device : entry.devices) {
      if (!device.rail.empty()) use.pods[device.rail].insert(holder);
    }
  }
  for (const UnreadableEntry& entry : scan.unreadable)
    use.unreadable.insert(kUnreadable + entry.key.ToString());
  return use;
}

std::string TextOf(const PendingChange& change) {
  std::string text = change.kind == PendingKind::kRail ? std::string() : change.name + ": ";
  text += Join({change.rails.begin(), change.rails.end()}, ", ");
  text += change.rails.size() == 1 ? " is in use by " : " are in use by ";
  // What an unreadable attachment is of is unknown; its name says how to find it.
  std::vector<std::string> users;
  for (const std::string& pod : change.pods) {
    if (pod.starts_with(kUnreadable)) users.push_back(pod);
  }
  const std::size_t pods = change.pods.size() - users.size();
  if (pods > 0) users.insert(users.begin(), std::to_string(pods) + (pods == 1 ? " pod" : " pods"));
  return text + Join(users, ", ");
}

std::set<std::string> RailsOf(const std::vector<PendingChange>& changes) {
  std::set<std::string> rails;
  for (const PendingChange& change : changes) rails.insert(change.rails.begin(), change.rails.end());
  return rails;
}

Error ConflictWithUse(Error error, const std::set<std::string>& rails) {
  error.code = ErrorCode::kConflict;
  error.hint = "it does not fit the rails in use; drain them: " + Join({rails.begin(), rails.end()}, ", ");
  return error;
}

std::vector<std::string> PfsAsWritten(const Rail& rail) {
  if (rail.position) return {"position " + std::to_string(*rail.position)};
  return rail.pfs;
}

Result<Composition> Compose(const std::string& present, const std::string& wanted, const RailUse& use,
                            const PfsOf& pfs_of) {
  const Fabric before = RH_TRY(ParseFabric(present, kPresent));
  const Fabric after = RH_TRY(ParseFabric(wanted, kWanted));
  // What has been read is JSON.
  Composer composer(before, after, Json::parse(present, nullptr, false), Json::parse(wanted, nullptr, false),
                    use, pfs_of);
  auto pending = RH_TRY(composer.Run());
  if (!composer.changed()) return Composition{wanted, {}};
  Composition composition{record::Dump(composer.text(), 2) + "\n", std::move(pending)};
  if (auto parsed = ParseFabric(composition.text, "the fabric that keeps busy rails"); !parsed) {
    std::set<std::string> busy;
    for (const Rail& rail : before.rails) {
      if (!use.Of(rail.name).empty()) busy.insert(rail.name);
    }
    return Fail(ConflictWithUse(std::move(parsed.error()), busy));
  }
  return composition;
}

}  // namespace railhead::fabric_follow
