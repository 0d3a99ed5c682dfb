#include "tests/system/soak/node.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"
#include "netns/json/json_reader.h"
#include "tests/support/listening.h"
#include "tests/system/crash/pod_netns.h"
#include "tests/system/soak/processes.h"

namespace railhead::soak {
namespace {

constexpr std::size_t kLongest = 5;  // calls
constexpr std::size_t kShown = 400;  // bytes of an answer

std::string Short(const std::string& text) {
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

bool HasMessage(const std::string& output) {
  const auto document = JsonDocument::Parse(output, "answer");
  if (!document) return false;
  return !document->Root().String("msg").value_or("").empty();
}

std::vector<int> LengthsOf(const crash::TraceResult& traced) {
  std::vector<int> lengths;
  for (const auto& process : traced.processes)
    lengths.push_back(std::max(1, static_cast<int>(process.calls.size())));
  return lengths;
}

}  // namespace

Node::Node(NodeSetting setting)
    : setting_(std::move(setting)), calls_(setting_.plugin), watchdog_([this] { Watch(); }) {}

Node::~Node() {
  {
    const Step step(*this, "the end of railheadd");
    while (!daemons_.empty()) KillDaemon(0);
  }
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  watchdog_.join();
}

std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  const auto names = ListDirectory("/proc");
  if (!names || !*names) return children;
  for (const auto& name : **names) {
    const auto pid = ParseInt(name);
    if (!pid) continue;
    const auto status = ReadFile("/proc/" + name + "/status");
    if (!status || !*status) continue;
    const auto parent = FieldOf(**status, "PPid");
    if (parent == ::getpid()) children.push_back(static_cast<pid_t>(*pid));
  }
  return children;
}

long FieldOf(const std::string& status, const std::string& name) {
  const auto at = status.find("\n" + name + ":");
  return at == std::string::npos ? 0 : std::strtol(status.c_str() + at + name.size() + 2, nullptr, 10);
}

int Node::BeginWatch(Watched watched) {
  const std::lock_guard lock(mutex_);
  watched_[++next_watched_] = std::move(watched);
  return next_watched_;
}

void Node::EndWatch(int number) {
  const std::lock_guard lock(mutex_);
  watched_.erase(number);
}

Node::Step::Step(Node& node, const std::string& what)
    : node_(node), number_(node.BeginWatch({Clock::now() + node.setting().step_limit, 0, what})) {}

Node::Step::~Step() {
  node_.EndWatch(number_);
}

void Node::Watch() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    for (auto& [number, watched] : watched_) {
      if (Clock::now() >= watched.deadline) Late(watched);
    }
    changed_.wait_for(lock,
                      std::min<std::chrono::milliseconds>(setting_.call_limit, std::chrono::seconds(1)));
  }
}

// Kills a late call, so that the others can continue. What is late in spite of that may wait for ever.
void Node::Late(Watched& watched) {
  ShowLate(watched);
  if (watched.pid == 0) {
    (void)KillDescendants(setting_.killed_limit);
    ::_exit(1);
  }
  wrong_.push_back(watched.what + " does not end within " + std::to_string(setting_.call_limit.count()) +
                   " ms");
  (void)::kill(watched.pid, SIGKILL);
  watched.pid = 0;
  watched.what += ", killed,";
  watched.deadline = Clock::now() + setting_.killed_limit;
}

void Node::ShowLate(const Watched& watched) const {
  const auto seconds = [](const Watched& of) {
    return std::chrono::duration<double>(Clock::now() - of.start).count();
  };
  (void)std::fprintf(stderr, "WRONG: %s does not end: %.1f s. Not ended either:", watched.what.c_str(),
                     seconds(watched));
  for (const auto& [number, other] : watched_) {
    if (&other != &watched) (void)std::fprintf(stderr, " %s: %.1f s;", other.what.c_str(), seconds(other));
  }
  for (const auto& wrong : wrong_) (void)std::fprintf(stderr, "\nwrong before: %s", wrong.c_str());
  (void)std::fprintf(stderr, "\n%s", DescribeProcesses().c_str());
}

Answer Node::Call(const std::string& command, const Slot& slot, const Killing& killing) {
  std::string config = slot.config;
  if (command == "CHECK")
    config = config.substr(0, config.rfind('}')) + ", \"prevResult\": " + slot.result + "}";
  return CallWith(config, command, slot.pod, killing);
}

Answer Node::CallWith(const std::string& config, const std::string& command, const crash::Pod& pod,
                      const Killing& killing) {
  const std::string what = command + " of " + pod.id;
  int number = 0;
  std::thread killer;
  crash::Tracing tracing;
  tracing.at = killing.at;
  if (command == "DEL") tracing.suppressed = setting_.planted;
  tracing.started = [&](pid_t pid) {
    if (killing.after) {
      killer = std::thread(
          [process = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), after = *killing.after] {
            std::this_thread::sleep_for(after);
            (void)::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
          });
    }
    number = BeginWatch({Clock::now() + setting_.call_limit, pid, what});
  };
  const auto start = Clock::now();
  const auto done = calls_.CallWith(config, command, pod, tracing);
  EndWatch(number);
  {
    const std::lock_guard lock(mutex_);
    longest_.emplace(std::chrono::duration<double>(Clock::now() - start).count(), what);
    if (longest_.size() > kLongest) longest_.erase(longest_.begin());
  }
  if (killer.joinable()) killer.join();
  Answer answer;
  if (!done && killing.after) {  // before it began
    answer.killed = true;
    return answer;
  }
  if (!done) {
    Wrong(what + ": " + Describe(done.error()));
    return answer;
  }
  answer.killed = (killing.after || killing.at) && !WIFEXITED(done->status);
  Judge(what, *done, answer);
  return answer;
}

void Node::Judge(const std::string& what, const crash::TraceResult& done, Answer& answer) {
  answer.succeeded = done.Succeeded();
  answer.output = done.output;
  answer.code = answer.succeeded ? 0 : crash::ErrorCodeOf(done.output);
  if (answer.killed || answer.succeeded) return;
  if (!WIFEXITED(done.status))
    return Wrong(what + " ends by signal " + std::to_string(WTERMSIG(done.status)));
  if (answer.code == 0 || !HasMessage(done.output)) {
    // The kill may have hit a child process instead. Then the call has to report that.
    return Wrong(what + " fails without code and message: " + Short(done.output));
  }
  const std::lock_guard lock(mutex_);
  ++codes_[answer.code];
}

Result<void> Node::Measure(const Slot& slot) {
  crash::Tracing counting;
  counting.count = true;
  RH_TRY(crash::MakePodNetns(slot.pod.netns));
  for (const char* command : {"ADD", "DEL"}) {
    const auto done = RH_TRY(calls_.CallWith(slot.config, command, slot.pod, counting));
    if (!done.Succeeded())
      return Fail(ErrorCode::kInvalid, std::string("an undisturbed ") + command + " fails: " + done.output);
    lengths_[command] = LengthsOf(done);
  }
  return crash::RemovePodNetns(slot.pod.netns);
}

crash::CallPoint Node::PointAt(const std::string& command, std::uint64_t luck) const {
  const auto& lengths = lengths_.at(command);
  const std::size_t process = luck % lengths.size();
  return {static_cast<int>(process),
          static_cast<int>(1 + luck / lengths.size() % static_cast<std::uint64_t>(lengths[process]))};
}

void Node::Hold(Slot& slot, const std::string& output) {
  const auto addresses = crash::AddressesOf(output);
  if (!addresses || addresses->empty())
    return Wrong("ADD of " + slot.pod.id + " tells no address: " + Short(output));
  const auto now = Clock::now();
  slot.addresses = *addresses;
  const std::lock_guard lock(mutex_);
  for (const auto& address : *addresses) {
    const auto released = cooling_down_.find(address);
    if (released != cooling_down_.end() && released->second.first != slot.pod.id &&
        now < released->second.second + setting_.reuse_delay) {
      wrong_.push_back("address " + address + " of " + released->second.first + " was given to " +
                       slot.pod.id + " before its reuse delay was over");
    }
    if (slot.released) {
      cooling_down_[address] = {slot.pod.id, *slot.released};
      continue;
    }
    const auto [holder, is_new] = holders_.try_emplace(address, slot.pod.id);
    if (!is_new && holder->second != slot.pod.id)
      wrong_.push_back("address " + address + " was given to " + slot.pod.id + ", but " + holder->second +
                       " has it");
  }
}

void Node::LetGo(Slot& slot, Clock::time_point when) {
  if (slot.released) return;
  slot.released = when;
  const std::lock_guard lock(mutex_);
  for (const auto& address : slot.addresses) {
    const auto holder = holders_.find(address);
    if (holder == holders_.end() || holder->second != slot.pod.id) continue;
    holders_.erase(holder);
    cooling_down_[address] = {slot.pod.id, when};
  }
}

void Node::Wrong(const std::string& what) {
  const std::lock_guard lock(mutex_);
  wrong_.push_back(what);
}

void Node::Count(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++counts_[what];
}

void Node::StartDaemon() {
  std::vector<std::string> environment{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  if (!setting_.plugin.root.empty()) environment.push_back("RAILHEAD_ROOT=" + setting_.plugin.root);
  testing::ProcessSpec daemon{.arguments = setting_.daemon, .environment = environment};
  daemon.out = daemon.err = setting_.log;
  daemon.ends_with_test = true;
  daemons_.push_back(std::make_unique<testing::Process>(daemon));
}

void Node::SignalDaemon(std::size_t number, int signal) const {
  if (number < daemons_.size()) daemons_[number]->Signal(signal);
}

void Node::KillDaemon(std::size_t number) {
  if (number < daemons_.size()) daemons_.erase(daemons_.begin() + static_cast<std::ptrdiff_t>(number));
}

void Node::ReapDaemons() {
  std::erase_if(daemons_, [&](const auto& daemon) {
    if (!daemon->HasEnded()) return false;
    Wrong("railheadd has ended by itself, with status " + std::to_string(daemon->Wait()));
    return true;
  });
}

bool Node::Reap() {
  ReapDaemons();
  for (const pid_t child : Children()) {
    if (std::ranges::none_of(daemons_, [&](const auto& daemon) { return daemon->pid() == child; }))
      (void)::waitpid(child, nullptr, __WALL | WNOHANG);
  }
  return Children().size() > daemons_.size();
}

// railheadd answers ADD when bind.sock answers.
Result<void> Node::AwaitDaemon() {
  const bool answered = Await([&] {
    ReapDaemons();
    return daemons_.empty() || testing::SomebodyListens(paths::BindSocket(root()));
  });
  if (daemons_.empty()) return Fail(ErrorCode::kNotFound, "railheadd does not run");
  if (answered) return {};
  return Fail(ErrorCode::kTimeout, "railheadd does not listen on " + paths::BindSocket(root()));
}

bool Shell(const std::string& command) {
  crash::Command shell;
  shell.arguments = {"/bin/bash", "-c", command};
  shell.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  shell.input = "";
  shell.errors = "/dev/null";
  const auto done = crash::Trace(shell, {});
  return done && done->Succeeded();
}

}  // namespace railhead::soak
