#include "tests/support/nccl/topology_rules.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "cni/nccl/topology_file.h"
#include "netns/base/text.h"
#include "tests/support/nccl/topology_parser.h"

namespace railhead {
namespace {

// The attributes that an element may have, and those that it must have.
struct Kind {
  std::string_view name;
  std::vector<std::string_view> parents;
  std::vector<std::string_view> required;
  std::vector<std::string_view> optional;
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {"system", {}, {"version"}, {"name"}},
      {"cpu", {"system"}, {"numaid", "affinity", "arch"}, {"vendor", "familyid", "modelid"}},
      // The last four belong to a real bridge. Without them every rank would look them up itself.
      {"pci",
       {"cpu", "pci"},
       {"busid", "class", "link_speed", "link_width"},
       {"vendor", "device", "subsystem_vendor", "subsystem_device"}},
      {"nic", {"pci"}, {}, {}},
      {"net", {"nic"}, {"name"}, {"speed", "latency", "port", "guid", "maxconn"}},
      {"gpu", {"pci"}, {}, {}},
  };
  return kinds;
}

// Attributes that NCCL would believe although they do harm.
struct Harm {
  std::string_view element;
  std::string_view attribute;
  std::string_view value;  // empty: any
  std::string_view why;
};

const std::vector<Harm>& Harms() {
  static const std::vector<Harm> harms = {
      {"gpu", "dev", "", "overrides the index that NVML gives, by which GPUs are paired with NICs"},
      {"gpu", "gdr", "", "forces GPUDirect, whether the driver has it or not"},
      {"net", "gdr", "", "forces GPUDirect, whether the driver has it or not"},
      {"pci", "vendor", "0x1000", "makes NCCL look for links between Broadcom switches"},
  };
  return harms;
}

constexpr std::string_view kBridgeClassText = "0x0604";

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// "0000:1a:00.0", as NCCL spells the addresses that it compares.
bool IsBusid(const std::string& text) {
  return text.size() == 12 && text[4] == ':' && text[7] == ':' && text[10] == '.' &&
         IsHex(text.substr(0, 4)) && IsHex(text.substr(5, 2)) && IsHex(text.substr(8, 2)) &&
         IsHex(text.substr(11));
}

bool IsClass(const std::string& text) {
  return text.size() == 8 && text.starts_with("0x") && IsHex(text.substr(2));
}

bool NamesAccelerator(const std::string* class_text) {
  return class_text != nullptr && (class_text->starts_with("0x03") || class_text->starts_with("0x12"));
}

bool IsNumber(const std::string& text, std::int64_t least) {
  const auto number = ParseInt(text);
  return number && *number >= least && *number <= INT32_MAX;
}

bool Contains(const std::vector<std::string_view>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

class Checker {
 public:
  explicit Checker(const std::vector<TopologyElement>& elements) : elements_(elements) {}

  std::vector<std::string> Check() {
    CheckCounts();
    for (const TopologyElement& element : elements_) {
      CheckKind(element);
      CheckSizes(element);
      CheckHarms(element);
      CheckValues(element);
      if (element.name == "cpu") CheckCpu(element);
      if (element.name == "pci") CheckPci(element);
      if (element.name == "nic" && element.children.size() > 1)
        Say(element, "has two <net>, which NCCL takes for ports of one");
      CheckSiblings(element);
    }
    CheckNodes();
    CheckUnique("pci", "busid");
    CheckUnique("cpu", "numaid");
    CheckUnique("net", "name");
    CheckNics();
    CheckSpeeds();
    return std::move(broken_);
  }

 private:
  void Say(const TopologyElement& element, const std::string& what) {
    broken_.push_back("line " + std::to_string(element.line) + ": <" + element.name + "> " + what);
  }

  void CheckCounts() {
    const auto roots = std::count_if(elements_.begin(), elements_.end(),
                                     [](const TopologyElement& element) { return !element.parent; });
    if (roots != 1) broken_.emplace_back("there has to be one <system> around everything else");
    if (elements_.size() > nccl::kMostTopologyElements) {
      broken_.push_back(std::to_string(elements_.size()) + " elements, but NCCL takes " +
                        std::to_string(nccl::kMostTopologyElements));
    }
  }

  void CheckKind(const TopologyElement& element) {
    const auto kind = std::find_if(Kinds().begin(), Kinds().end(),
                                   [&](const Kind& one) { return one.name == element.name; });
    if (kind == Kinds().end()) return Say(element, "is not for NCCL");
    const std::string parent = element.parent ? elements_[*element.parent].name : "";
    if (element.parent ? !Contains(kind->parents, parent) : !kind->parents.empty()) {
      Say(element, parent.empty() ? "has to be inside of another" : "is out of place in <" + parent + ">");
    }
    for (const std::string_view name : kind->required) {
      if (element.Find(name) == nullptr) Say(element, "lacks " + std::string(name));
    }
    std::set<std::string> seen;
    for (const auto& [name, value] : element.attributes) {
      if (!seen.insert(name).second) Say(element, "has " + name + " twice");
      const bool known = Contains(kind->required, name) || Contains(kind->optional, name);
      if (!known && !IsHarm(element.name, name)) Say(element, "has " + name + ", which is not ours to say");
    }
  }

  static bool IsHarm(std::string_view element, std::string_view attribute) {
    return std::any_of(Harms().begin(), Harms().end(), [&](const Harm& harm) {
      return harm.element == element && harm.attribute == attribute;
    });
  }

  void CheckHarms(const TopologyElement& element) {
    for (const Harm& harm : Harms()) {
      const std::string* value = harm.element == element.name ? element.Find(harm.attribute) : nullptr;
      if (value == nullptr || (!harm.value.empty() && *value != harm.value)) continue;
      Say(element, std::string(harm.attribute) + "=\"" + *value + "\" " + std::string(harm.why));
    }
  }

  void CheckSizes(const TopologyElement& element) {
    if (element.children.size() > nccl::kMostTopologyChildren) {
      Say(element, "has " + std::to_string(element.children.size()) + " children, but NCCL takes " +
                       std::to_string(nccl::kMostTopologyChildren));
    }
    if (element.name == "net" && element.attributes.size() > kMostNetAttributes) {
      Say(element, "has " + std::to_string(element.attributes.size()) +
                       " attributes, but NCCL has room for " + std::to_string(kMostNetAttributes));
    }
    for (const auto& [name, value] : element.attributes) {
      if (value.size() <= nccl::kMostTopologyValue && name.size() <= nccl::kMostTopologyValue) continue;
      Say(element,
          "has an attribute of more than " + std::to_string(nccl::kMostTopologyValue) + " characters");
    }
  }

  void Require(const TopologyElement& element, std::string_view name, bool (*is)(const std::string&),
               const std::string& what) {
    const std::string* value = element.Find(name);
    if (value != nullptr && !is(*value)) {
      Say(element, "has " + std::string(name) + "=\"" + *value + "\", which is not " + what);
    }
  }

  void CheckValues(const TopologyElement& element) {
    const auto positive = [](const std::string& text) { return IsNumber(text, 1); };
    const auto any = [](const std::string& text) { return !text.empty(); };
    if (element.name == "system") {
      Require(
          element, "version", [](const std::string& text) { return text == "1"; }, "1");
    } else if (element.name == "cpu") {
      Require(
          element, "numaid", [](const std::string& text) { return IsNumber(text, -1); }, "a NUMA node");
      Require(element, "arch", any, "a processor");
    } else if (element.name == "pci") {
      Require(element, "busid", IsBusid, "an address like 0000:1a:00.0, in lower case");
      Require(element, "class", IsClass, "a class like 0x020000");
      Require(element, "link_speed", any, "a speed");
      Require(element, "link_width", positive, "a number of lanes");
    } else if (element.name == "net") {
      Require(element, "name", any, "an RDMA device");
      Require(element, "speed", positive, "a rate in Mbit/s");
    }
  }

  // A rank with a GPU below a processor adds missing attributes, and the other ranks do not.
  void CheckCpu(const TopologyElement& cpu) {
    const std::string* arch = cpu.Find("arch");
    if (arch == nullptr || *arch != "x86_64") return;
    for (const char* name : {"vendor", "familyid", "modelid"}) {
      if (cpu.Find(name) == nullptr) Say(cpu, std::string("lacks ") + name);
    }
  }

  // NCCL searches for further devices only below a device that it takes for a switch (ncclTopoAddPci).
  void CheckPci(const TopologyElement& pci) {
    const std::string* class_text = pci.Find("class");
    const bool bridge = class_text != nullptr && class_text->starts_with(kBridgeClassText);
    const auto count = [&](std::string_view name) {
      return std::count_if(pci.children.begin(), pci.children.end(),
                           [&](std::size_t child) { return elements_[child].name == name; });
    };
    if (count("pci") > 0 && !bridge) Say(pci, "is no bridge, but has functions below it");
    if (count("nic") > 0 && bridge) Say(pci, "is a bridge, but has a <nic>");
    if (count("nic") > 1) Say(pci, "has two <nic>");
    if (count("nic") > 0 && NamesAccelerator(class_text)) Say(pci, "is an accelerator, but has a <nic>");
    const std::string* busid = pci.Find("busid");
    const bool real = busid != nullptr && !busid->starts_with("ffff:ff:");
    if (!bridge || !real) return;
    for (const char* name : {"vendor", "device", "subsystem_vendor", "subsystem_device"}) {
      if (pci.Find(name) == nullptr) {
        Say(pci, std::string("is a real bridge without ") + name + ", which some ranks would add");
      }
    }
  }

  // The address without its last digit. nullopt for accelerators, since NCCL does not merge them.
  [[nodiscard]] std::optional<std::string> Stem(const TopologyElement& element) const {
    const std::string* busid = element.name == "pci" ? element.Find("busid") : nullptr;
    const std::string* class_text = element.Find("class");
    if (busid == nullptr || !IsBusid(*busid) || class_text == nullptr) return std::nullopt;
    if (NamesAccelerator(class_text)) return std::nullopt;
    return busid->substr(0, busid->size() - 1);
  }

  void CheckSiblings(const TopologyElement& parent) {
    std::set<std::string> stems;
    for (const std::size_t child : parent.children) {
      const auto stem = Stem(elements_[child]);
      if (!stem || stems.insert(*stem).second) continue;
      Say(elements_[child],
          "differs from a sibling in the last digit of busid only: NCCL takes them for one");
    }
  }

  // NCCL 2.21.5 takes the sign of -1 for part of another number, and sees two machines.
  void CheckNodes() {
    const auto is_cpu = [](const TopologyElement& element) { return element.name == "cpu"; };
    if (std::count_if(elements_.begin(), elements_.end(), is_cpu) < 2) return;
    for (const TopologyElement& element : elements_) {
      const std::string* node = is_cpu(element) ? element.Find("numaid") : nullptr;
      if (node != nullptr && *node == "-1")
        Say(element, "has numaid=\"-1\" beside another: NCCL finds no way between them");
    }
  }

  // NCCL 2.21.5 numbers NICs without the last digit, wherever they are.
  void CheckNics() {
    std::map<std::string, const TopologyElement*> stems;
    for (const TopologyElement& element : elements_) {
      if (element.name != "nic" || !element.parent) continue;
      const TopologyElement& pci = elements_[*element.parent];
      const auto stem = Stem(pci);
      if (!stem) continue;
      const auto [at, added] = stems.emplace(*stem, &pci);
      if (added || at->second == &pci || at->second->parent == pci.parent) continue;
      Say(pci, "differs from another NIC in the last digit of busid only: NCCL takes them for one");
    }
  }

  void CheckUnique(std::string_view element_name, std::string_view attribute) {
    std::set<std::string> values;
    for (const TopologyElement& element : elements_) {
      const std::string* value = element.name == element_name ? element.Find(attribute) : nullptr;
      if (value == nullptr || values.insert(*value).second) continue;
      Say(element, "has " + std::string(attribute) + "=\"" + *value + "\", as another one has");
    }
  }

  void CheckSpeeds() {
    std::set<std::string> speeds;
    for (const TopologyElement& element : elements_) {
      if (element.name != "net") continue;
      const std::string* speed = element.Find("speed");
      speeds.insert(speed == nullptr ? "" : *speed);
    }
    if (speeds.size() > 1) {
      broken_.emplace_back("the NICs' speeds differ: NCCL would give GPUs the NICs of other rails");
    }
  }

  const std::vector<TopologyElement>& elements_;
  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> TopologyViolations(std::string_view text) {
  const ParsedTopology parsed = ParseTopology(text);
  if (parsed.error) return {*parsed.error};
  return Checker(parsed.elements).Check();
}

}  // namespace railhead
