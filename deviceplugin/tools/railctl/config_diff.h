// What another fabric.json would change on this node, and for whom.
//
// Both files are applied to the hardware as it is. Only rails of which the node has a PF count. Running pods
// keep what they have: a change that they would have to get needs a drain. Ownership: values. Threads:
// DiffConfigs() is pure, ReadNodeConfig() and ReadHolders() are thread-safe. Errors: those of the files, the
// journal and the address store.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/tools/railctl/address_report.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead::railctl {

enum class ChangedKind : std::uint8_t { kFabric, kRail, kResource, kDevice };
enum class ChangeWord : std::uint8_t { kAdded, kRemoved, kChanged };

struct FieldChange {
  std::string field;
  std::string before;  // as JSON; "": absent
  std::string after;

  static void List(auto& f) {
    f("field", &FieldChange::field);
    f("before", &FieldChange::before);
    f("after", &FieldChange::after);
  }
};

// "vlan 100 -> 200, mtu - -> 9000"
std::string TextOf(const std::vector<FieldChange>& fields);

struct ConfigChange {
  ChangedKind kind = ChangedKind::kFabric;
  std::string name;  // of the key of fabric.json, the rail, the resource or the device
  ChangeWord change = ChangeWord::kChanged;
  std::vector<FieldChange> fields;
  std::set<std::string> drain;  // to be drained before the change
  std::set<std::string> pods;   // that hold devices or addresses which the change touches

  static void List(auto& f) {
    f("kind", &ConfigChange::kind, {.column = "KIND"});
    f("name", &ConfigChange::name, {.column = "NAME"});
    f("change", &ConfigChange::change, {.column = "CHANGE"});
    f("drain", &ConfigChange::drain, {.column = "DRAIN"});
    f("pods", &ConfigChange::pods, {.column = "PODS"});
    f("fields", &ConfigChange::fields);
    f.Column("WHAT", [](const ConfigChange& it) { return TextOf(it.fields); });
  }
};

struct ConfigDiff {
  std::string file;
  std::vector<ConfigChange> changes;

  [[nodiscard]] std::set<std::string> Drain() const;

  static void List(auto& f) {
    f("file", &ConfigDiff::file);
    f("changes", &ConfigDiff::changes);
    f.Output("drain", &ConfigDiff::Drain);
  }
};

// A fabric.json on this node's hardware.
struct NodeConfig {
  Fabric fabric;
  std::map<std::string, std::string> pfs;                  // of the node's rails, by name
  std::map<std::string, std::set<std::string>> resources;  // and their devices
  std::set<std::string> with_table;                        // the rails that state their table
  std::string node;
  std::optional<int> index;  // this node's, where it has one
};
// nullopt: no such file.
Result<std::optional<NodeConfig>> ReadNodeConfig(const Root& root, const std::string& path);

// The pods that hold devices and addresses of this node.
struct Holders {
  std::vector<JournalEntry> attachments;
  std::vector<KnownAddress> addresses;  // that are held
  std::set<std::string> unreadable;     // attachments that cannot be read: each may be of any device

  // Names of pods, else "container ID".
  [[nodiscard]] std::set<std::string> OfDevice(const std::string& device) const;
  [[nodiscard]] std::set<std::string> OfRail(const Rail& rail) const;
  // Those with an address of the rail's subnet that by `config` is no more of this node: another one may give
  // it.
  [[nodiscard]] std::set<std::string> Strayed(const Rail& rail, const NodeConfig& config) const;
};
Result<Holders> ReadHolders(const Root& root);

// `before`: nullptr where the node has no fabric.json.
std::vector<ConfigChange> DiffConfigs(const NodeConfig* before, const NodeConfig& after,
                                      const Holders& holders);

}  // namespace railhead::railctl

template <>
struct railhead::Names<railhead::railctl::ChangedKind> {
  using Kind = railctl::ChangedKind;
  static constexpr std::array kAll = {std::pair{"fabric", Kind::kFabric}, std::pair{"rail", Kind::kRail},
                                      std::pair{"resource", Kind::kResource},
                                      std::pair{"device", Kind::kDevice}};
};

template <>
struct railhead::Names<railhead::railctl::ChangeWord> {
  using Word = railctl::ChangeWord;
  static constexpr std::array kAll = {std::pair{"added", Word::kAdded}, std::pair{"removed", Word::kRemoved},
                                      std::pair{"changed", Word::kChanged}};
};
