#include "tests/system/soak/pod_acts.h"

#include <algorithm>
#include <random>

#include "netns/base/files.h"
#include "tests/system/crash/pod_netns.h"

namespace railhead::soak {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kNameLimit{1};
constexpr int kTryAgainLater = 11;  // CNI specification, "Error codes"
constexpr int kCarrierTries = 3;
constexpr const char* kDriver = "/sys/bus/pci/drivers/igbvf/";

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// The random choices of one act.
class Luck {
 public:
  explicit Luck(std::uint64_t seed) : random_(seed) {}

  std::uint64_t Any() { return random_(); }
  std::size_t Below(std::size_t count) { return random_() % count; }
  bool Happens(int percent) { return static_cast<int>(random_() % 100) < percent; }
  milliseconds Within(milliseconds limit) {
    return milliseconds(random_() % static_cast<std::uint64_t>(limit.count()));
  }
  template <typename Value>
  const Value& Of(const std::vector<Value>& values) {
    return values[Below(values.size())];
  }
  Killing Kill(const Node& node, const std::string& command) {
    Killing killing;
    if (Happens(50)) {
      killing.after = Within(kLongestUntilKill);
    } else {
      killing.at = node.PointAt(command, Any());
    }
    return killing;
  }

 private:
  static constexpr milliseconds kLongestUntilKill{600};
  std::mt19937_64 random_;
};

// Settings of the VF. Some of them make the plugin bind its driver again.
std::string Settings(const Slot& slot, Luck& luck, bool hardware) {
  if (!hardware || luck.Happens(60)) return "";
  std::string settings = R"("vlanQoS": 5, "vlan": 200, "spoofchk": "on", "max_tx_rate": 400, )";
  if (luck.Happens(25)) {
    const auto last = static_cast<unsigned>(slot.number) % 100;
    settings +=
        R"("mac": "02:00:00:00:aa:)" + std::string(last < 10 ? "0" : "") + std::to_string(last) + "\", ";
  }
  return settings;
}

// While a soft RoCE device loses its NIC, the kernel cannot make namespaces: rdma_dev_init_net queries every
// device, and rxe_query_port answers ENODEV. A runtime would also try again.
void MakeNamespace(Node& node, const Slot& slot) {
  Result<void> made;
  const bool there = Await([&] {
    made = crash::MakePodNetns(slot.pod.netns);
    if (!made) (void)RemoveFile(slot.pod.netns);
    return made.has_value();
  });
  if (!there) node.Wrong(Describe(made.error()));
}

void Delete(Node& node, Slot& slot, const Killing& killing = {}) {
  node.LetGo(slot, Clock::now());
  slot.attached = false;
  (void)node.Call("DEL", slot, killing);
}

void RemoveNamespace(Slot& slot, Node& node) {
  if (!Exists(slot.pod.netns)) return;
  node.LetGo(slot, Clock::now());
  slot.attached = false;
  (void)crash::RemovePodNetns(slot.pod.netns);
}

void AddTwice(Node& node, Slot& slot, const Weather& weather) {
  Answer other;
  std::thread beside([&] { other = node.Call("ADD", slot); });
  const Answer answer = node.Call("ADD", slot);
  beside.join();
  if (!answer.succeeded && !other.succeeded) {
    const bool may_fail = weather.adds_may_fail || (slot.late && weather.late_adds_may_fail) ||
                          (slot.late && (answer.code == kTryAgainLater || other.code == kTryAgainLater));
    if (!may_fail)
      node.Wrong("of two ADDs of " + slot.pod.id + " none succeeds: " + answer.output + other.output);
    return;
  }
  slot.attached = true;
  slot.result = answer.succeeded ? answer.output : other.output;
  node.Hold(slot, slot.result);
}

// Uses the answer only to record the pod's addresses.
void AddBeside(Node& node, Slot& slot, const std::function<void()>& beside) {
  Answer answer;
  std::thread adding([&] { answer = node.Call("ADD", slot); });
  beside();
  adding.join();
  if (answer.succeeded) node.Hold(slot, answer.output);
}

void Unbind(const Slot& slot) {
  (void)WriteAttribute(std::string(kDriver) + "unbind", slot.device);
}

void Check(Node& node, const Slot& slot) {
  if (!slot.attached) return;
  const Answer answer = node.Call("CHECK", slot);
  if (!answer.succeeded && !slot.touched) node.Wrong("CHECK of " + slot.pod.id + " fails: " + answer.output);
}

// For another sandbox with the pod's VF. It has the UID of the slot's pod.
Slot SandboxBeside(const Slot& slot, const std::string& suffix) {
  Slot other = slot;
  other.pod.id += suffix;
  other.pod.netns += suffix;
  other.attached = other.touched = false;
  other.result.clear();
  other.addresses.clear();
  other.released.reset();
  return other;
}

// Another pod asks for a pod's VF.
void Conflict(Node& node, Slot& slot) {
  const bool held = slot.attached;
  Slot other = SandboxBeside(slot, "-other");
  other.pod.arguments += "-other";
  MakeNamespace(node, other);
  const Answer answer = node.Call("ADD", other);
  if (answer.succeeded && held)
    node.Wrong("ADD of " + other.pod.id + " succeeds, but " + slot.pod.id + " has " + slot.device);
  if (answer.succeeded) node.Hold(other, answer.output);
  Leave(node, other);
}

// The pod's sandbox has ended, and its DEL comes after the next one's ADD.
void ReplaceSandbox(Node& node, Slot& slot, const Weather& weather) {
  Slot old = slot;
  slot = SandboxBeside(old, "-next");
  slot.nic = node.setting().plugin.ifname;
  node.LetGo(old, Clock::now());
  MakeNamespace(node, slot);
  Add(node, slot, weather);
  Leave(node, old);
  Check(node, slot);
}

// ---- what the pod itself does ----------------------------------------------------------

void InPod(const Slot& slot, const std::string& commands) {
  (void)Shell("ip -n " + slot.pod.netns.substr(slot.pod.netns.rfind('/') + 1) + " -force -batch - <<'E'\n" +
              commands + "E");
}

void Rename(Slot& slot, Luck& luck) {
  static const std::vector<std::string> names = {"eth13", "pf0",         "soak0", "soak1",
                                                 "soak8", "rh000044100", "net2"};
  const std::string& name = luck.Of(names);
  InPod(slot, "link set " + slot.nic + " down\nlink set " + slot.nic + " name " + name + "\nlink set " +
                  name + " up\n");
  slot.nic = name;
}

void Readdress(Slot& slot, Luck& luck) {
  const std::string nic = slot.nic;
  const std::vector<std::string> changes = {
      "address flush dev " + nic + "\n",
      "address add 192.168.7.7/24 dev " + nic + "\n",
      "address add 2001:db8::7/64 dev " + nic + "\n",
      "link set " + nic + " mtu 1300\n",
      "link set " + nic + " promisc on allmulticast on\n",
      "link set " + nic + " alias of-the-pod txqueuelen 7\n",
      "link set " + nic + " down\n",
      "route add 172.16.0.0/12 dev " + nic + "\n",
      "rule add from 192.168.7.7 table 77\n",
      "link set " + nic + " group 7\n",
      "link set " + nic + " address 02:00:00:00:bb:01\n",
  };
  std::string commands;
  for (std::size_t i = 0; i < 3; ++i) commands += luck.Of(changes);
  InPod(slot, commands);
}

void Stack(Slot& slot, Luck& luck) {
  const std::string on = "link add link " + slot.nic + " name ";
  const std::string vlan = "v" + std::to_string(luck.Below(9));
  const std::string macvlan = "m" + std::to_string(luck.Below(9));
  std::string commands = on + vlan + " type vlan id " + std::to_string(2 + luck.Below(4000)) + "\n" + on +
                         macvlan + " type macvlan mode bridge\nlink set " + vlan + " up\nlink set " +
                         macvlan + " up\n";
  if (luck.Happens(50)) commands += "link add link " + macvlan + " name upper type vlan id 7\n";
  InPod(slot, commands);
}

void GiveAltNames(Slot& slot, Luck& luck) {
  static const std::vector<std::string> names = {"eth13", "soak2", "soak9", "eth14",
                                                 "the-long-name-of-a-nic-in-a-pod"};
  InPod(slot, "link property add dev " + slot.nic + " altname " + luck.Of(names) +
                  "\nlink property add dev " + slot.nic + " altname of-pod-" + std::to_string(slot.number) +
                  "\n");
}

void DoInPod(Slot& slot, PodAct act, Luck& luck) {
  if (act == PodAct::kRename) Rename(slot, luck);
  if (act == PodAct::kReaddress) Readdress(slot, luck);
  if (act == PodAct::kStack) Stack(slot, luck);
  if (act == PodAct::kAltName) GiveAltNames(slot, luck);
  slot.touched = true;
}

void DoComing(Node& node, Slot& slot, PodAct act, Luck& luck, const Weather& weather) {
  if (act == PodAct::kAdd) return Add(node, slot, weather);
  if (act == PodAct::kAddTwice) return AddTwice(node, slot, weather);
  const auto start = Clock::now();
  const auto after = luck.Within(milliseconds(400));
  if (act == PodAct::kAddKilled) {
    const Answer answer = node.Call("ADD", slot, luck.Kill(node, "ADD"));
    if (answer.succeeded) node.Hold(slot, answer.output);
  } else if (act == PodAct::kAddAndDel) {
    node.LetGo(slot, start);
    AddBeside(node, slot, [&] {
      std::this_thread::sleep_for(after);
      (void)node.Call("DEL", slot);
    });
  } else if (act == PodAct::kAddGone) {
    node.LetGo(slot, start);
    AddBeside(node, slot, [&] {
      std::this_thread::sleep_for(after);
      RemoveNamespace(slot, node);
    });
  } else if (act == PodAct::kAddUnbound) {
    node.LetGo(slot, start);
    AddBeside(node, slot, [&] {
      std::this_thread::sleep_for(after);
      Unbind(slot);
    });
    Bind(node, slot, kNameLimit);
  }
}

}  // namespace

void Come(Node& node, Slot& slot, int number, std::uint64_t seed) {
  Luck luck(seed);
  slot.number = number;
  slot.pod.id = "soak-" + std::to_string(number);
  slot.pod.netns = node.setting().netns_directory + "/" + slot.pod.id;
  slot.pod.arguments = "IgnoreUnknown=1;K8S_POD_UID=uid-of-" + slot.pod.id;
  slot.config = Replaced(Replaced(node.setting().plugin.config, "DEVICE", slot.device), "SETTINGS",
                         Settings(slot, luck, node.setting().hardware));
  slot.nic = node.setting().plugin.ifname;
  slot.attached = slot.touched = false;
  slot.result.clear();
  slot.addresses.clear();
  slot.released.reset();
  MakeNamespace(node, slot);
}

// Like kubelet, it tries again after a temporary refusal: soon after its start railheadd may not have
// finished its first checks. And an emulated VF may miss for minutes that its PF is up again, until it is
// attached anew.
void Add(Node& node, Slot& slot, const Weather& weather) {
  Answer answer;
  const bool late_waits = slot.late && !weather.late_adds_may_fail;
  int without_carrier = 0;
  const auto is_last = [&] {
    answer = node.Call("ADD", slot);
    if (answer.succeeded || answer.code != kTryAgainLater || weather.adds_may_fail) return true;
    if (answer.output.find("has no carrier after") == std::string::npos) return !late_waits;
    return ++without_carrier == kCarrierTries;
  };
  (void)Await(is_last, kCarrierTries * kCallLimit);
  if (answer.succeeded) {
    slot.attached = true;
    slot.result = answer.output;
    return node.Hold(slot, answer.output);
  }
  if (weather.adds_may_fail || (slot.late && weather.late_adds_may_fail)) return;
  node.Wrong("ADD of " + slot.pod.id + " fails: " + answer.output);
}

void Leave(Node& node, Slot& slot) {
  if (slot.number == 0) return;
  node.LetGo(slot, Clock::now());
  slot.attached = false;
  Answer answer;
  const bool deleted = Await([&] {
    answer = node.Call("DEL", slot);
    return answer.succeeded;
  });
  if (!deleted) node.Wrong("DEL of " + slot.pod.id + " does not succeed: " + answer.output);
  RemoveNamespace(slot, node);
  slot.number = 0;
}

void Bind(Node& node, Slot& slot, milliseconds limit) {
  (void)WriteAttribute(std::string(kDriver) + "bind", slot.device);
  // A DEL or railheadd may rename it meanwhile.
  const auto name = [&]() -> std::string {
    const auto names = ListDirectory("/sys/bus/pci/devices/" + slot.device + "/net");
    return names && *names && !(*names)->empty() ? (*names)->front() : "";
  };
  if (!Await([&] { return !name().empty(); }))
    return node.Wrong(slot.device + " has no interface after its driver was bound again");
  // Another NIC may have this name from its last pod. That pod's DEL frees the name.
  slot.unnamed = !Await(
      [&] {
        const std::string now = name();
        return now == slot.host_name || Shell("ip link set " + now + " name " + slot.host_name);
      },
      limit);
}

void Do(Node& node, Slot& slot, const Choice& choice, const Weather& weather) {
  Luck luck(choice.seed);
  node.Count(NameOf(choice.act));
  if (choice.pod != slot.number) {
    Come(node, slot, choice.pod, luck.Any());
    return DoComing(node, slot, choice.act, luck, weather);
  }
  switch (choice.act) {
    case PodAct::kDelKilled:
      return Delete(node, slot, luck.Kill(node, "DEL"));
    case PodAct::kDelTwice: {
      std::thread beside([&] { (void)node.Call("DEL", slot); });
      Delete(node, slot);
      return beside.join();
    }
    case PodAct::kDel:
      return Delete(node, slot);
    case PodAct::kGone:
      RemoveNamespace(slot, node);
      return Delete(node, slot);
    case PodAct::kCheck:
      return Check(node, slot);
    case PodAct::kConflict:
      return Conflict(node, slot);
    case PodAct::kReplaced:
      return ReplaceSandbox(node, slot, weather);
    case PodAct::kUnbound:
      Unbind(slot);
      slot.touched = true;
      return Bind(node, slot, kNameLimit);
    default:
      return DoInPod(slot, choice.act, luck);
  }
}

}  // namespace railhead::soak
