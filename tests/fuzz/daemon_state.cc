// Files that railheadd reads. The operator wrote some; an earlier process left the others, perhaps on a disk
// that lost parts. The first byte selects the file.
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/state/allocation.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "deviceplugin/node/resources/slots.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

constexpr const char* kSlot = "slot-1";

// A node in memory, with a slot that is held.
const Root& Node() {
  static const Root node = [] {
    Root root(ScratchDirectory());
    (void)MakeDirectories(paths::Locks(root));
    (void)MakeDirectories(paths::Attachments(root) + "/c");
    (void)MakeDirectories(paths::Allocations(root));
    (void)WriteInPlace(paths::Lock(root, kSlot), "c/n@i.json\n");
    return root;
  }();
  return node;
}

void Put(const std::string& path, const std::string& text) {
  Require(WriteInPlace(path, text).has_value(), "the fuzzer can write");
}

void CheckRefusal(const Error& error) {
  Require(!error.message.empty(), "a refusal says why");
}

void Topology(const std::string& text) {
  const auto config = topology::ParseTopologyConfig(text, "topology.json");
  if (!config) CheckRefusal(config.error());
}

void Rules(const std::string& text) {
  const auto document = JsonDocument::Parse(text, "fabric.json");
  if (!document) return CheckRefusal(document.error());
  JsonReader reader = document->Root();
  const health::HealthRules rules = health::ReadHealthRules(reader);
  if (const auto read = reader.status(); !read) return CheckRefusal(read.error());
  Require(rules.interval.count() > 0 && rules.vf_interval.count() > 0 && rules.counter_interval.count() > 0,
          "a timer never spins");
  for (const health::HealthRule rule : health::AllHealthRules()) {
    const health::RuleSettings& settings = rules.Of(rule);
    Require(settings.down_after.count() >= 0 && settings.up_after.count() >= 0, "times are not negative");
    for (const health::CounterLimit& counter : settings.counters) {
      Require(IsSafeName(counter.counter), "a counter's name is a file name");
      Require(counter.window.count() > 0, "a window is some time");
    }
  }
}

void Health(const std::string& text) {
  Put(health::kHealthFile.PathIn(Node()), text);
  const auto state = health::kHealthFile.Read(Node());
  if (!state) return CheckRefusal(state.error());
  Require(state->has_value(), "a file that is there is read");
  Require(health::kHealthFile.Write(Node(), **state).has_value(), "what was read can be written");
  const auto again = health::kHealthFile.Read(Node());
  Require(again && *again, "what we write is read");
  Require(health::kHealthFile.Write(Node(), **again).has_value(), "and can be written again");
  const auto third = health::kHealthFile.Read(Node());
  Require(third && *third && **third == **again, "writing it again changes nothing");
}

void Record(const std::string& text) {
  Put(paths::Allocations(Node()) + "/d.json", text);
  const auto record = ReadAllocation(Node(), "d");
  if (!record) return CheckRefusal(record.error());
  AllocationRecord own = **record;
  own.device_id = "d";
  if (!WriteAllocation(Node(), own)) return;  // no UTF-8 is refused before
  const auto again = ReadAllocation(Node(), "d");
  Require(again && *again && (*again)->siblings == own.siblings && (*again)->generation == own.generation,
          "a record is read as it was written");
}

void Entry(const std::string& text) {
  Put(paths::Attachments(Node()) + "/c/n@i.json", text);
  const auto bound = resources::ReadBoundSlots(Node());
  for (const auto& [slot, device] : bound) Require(slot == kSlot, "only what is held is bound");
  (void)Journal(Node()).Scan();
}

void CheckSettings(const provision::PfSettings& pf) {
  Require(!pf.vfs || (*pf.vfs >= 0 && *pf.vfs <= 65535), "a number of VFs is one");
  Require(!pf.vfs || !pf.all_vfs, "there is one number");
  Require(!pf.mtu || (*pf.mtu >= 68 && *pf.mtu <= 65535), "an MTU is one");
  Require(pf.driver.empty() || IsSafeName(pf.driver), "a driver's name is a file name");
}

void Provisioning(const std::string& text) {
  const auto fabric = ParseFabric(text, "fabric.json");
  if (!fabric) return CheckRefusal(fabric.error());
  const auto settings = provision::ReadProvisionSettings(*fabric, "fabric.json");
  if (!settings) return CheckRefusal(settings.error());
  if (!*settings) return;
  CheckSettings((*settings)->all);
  for (const auto& [rail, pf] : (*settings)->rails) {
    Require(fabric->FindRail(rail) != nullptr, "only rails are set");
    CheckSettings(pf);
  }
}

void Read(std::string text) {
  static constexpr void (*kReaders[])(const std::string&) = {Topology, Rules, Health,
                                                             Record,   Entry, Provisioning};
  if (text.empty()) return;
  const auto which = static_cast<unsigned char>(text.front()) % std::size(kReaders);
  text.erase(0, 1);
  kReaders[which](text);
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  railhead::fuzz::Read(railhead::fuzz::TextOf(data, size));
  return 0;
}
