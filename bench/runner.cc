// bench_runner: starts processes and measures their time, on request of bench/*.py.
//
// It starts a plugin the way a container runtime does, and waits for the kernel where a contender has to.
// Python would do both too slowly: its own time would be part of the figure.
//
// Each line on stdin is one JSON object; each answer is one on stdout:
//
//   {"run": {"path": P, "arguments": [..], "environment": [..], "input": T}, "count": N, "atOnce": M}
//     -> {"seconds": S, "ms": [..], "cpuMs": [..], "output": T}
//
//   {"await": {"netns": P, "links": [{"name": N, "rdma": D, "address": A}]}}
//     -> {"ms": [T]}
//
//   {"state": {"netns": P}}
//     -> {"links": [{"name", "mtu", "addresses"}],
//         "routes": [{"to", "via", "link", "table"}], "rules": [{"from", "oif", "table"}]}
//
// "output" is the last process's. "await" waits for carrier; with "rdma" for the GID, too. "state"
// lists the IPv4 settings of a pod; {} stands for the host.
//
// A process inherits nothing of the environment; "{n}" in its own becomes its number. Input, output and error
// output are memory files. The runner prepares them before the clock starts, and reads them after it has
// stopped. The time is therefore that from spawn to wait, without the service of a pipe. CPU time includes
// the children's. A step that fails answers {"error": T}. Exit status: 0 at the end of stdin; 1 when a line
// is not JSON.
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "netns/base/unique_fd.h"
#include "netns/json/json_reader.h"
#include "netns/linux_kernel.h"

namespace railhead::bench {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto kWait = std::chrono::seconds(120);  // emulated machines are slow

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Call {
  std::string path;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string input;
};

struct Ended {
  double wall_ms = 0;
  double cpu_ms = 0;
  int status = 0;
  std::string output;
};

Result<UniqueFd> MemoryFile(const char* name, const std::string& content) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd.valid()) return FailSys(errno, "making a memory file");
  if (!content.empty() &&
      ::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    return FailSys(errno, "filling a memory file");
  }
  (void)::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

std::string ContentOf(const UniqueFd& fd) {
  std::string content;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t size = ::pread(fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(content.size()));
    if (size <= 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

double Milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

Result<Ended> SpawnAndWait(const Call& call, std::array<int, 3> standard) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; ++i) ::posix_spawn_file_actions_adddup2(&actions, standard.at(i), i);
  std::vector<std::string> arguments = {call.path};
  arguments.insert(arguments.end(), call.arguments.begin(), call.arguments.end());
  std::vector<std::string> environment = call.environment;
  const auto argument_pointers = Pointers(arguments);
  const auto environment_pointers = Pointers(environment);

  Ended ended;
  pid_t pid = 0;
  rusage usage{};
  const auto start = Clock::now();
  const int error = ::posix_spawn(&pid, call.path.c_str(), &actions, nullptr, argument_pointers.data(),
                                  environment_pointers.data());
  if (error == 0) {
    while (::wait4(pid, &ended.status, 0, &usage) < 0 && errno == EINTR) {
    }
  }
  ended.wall_ms = MsSince(start);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return FailSys(error, "running " + call.path);
  ended.cpu_ms = Milliseconds(usage.ru_utime) + Milliseconds(usage.ru_stime);
  return ended;
}

// kIo with the child's own words when it cannot be started or fails.
Result<Ended> RunOne(Call call, int number) {
  for (std::string& variable : call.environment) {
    const auto at = variable.find("{n}");
    if (at != std::string::npos) variable.replace(at, 3, std::to_string(number));
  }
  const UniqueFd input = RH_TRY(MemoryFile("input", call.input));
  const UniqueFd output = RH_TRY(MemoryFile("output", ""));
  const UniqueFd errors = RH_TRY(MemoryFile("errors", ""));
  Ended ended = RH_TRY(SpawnAndWait(call, {input.get(), output.get(), errors.get()}));
  ended.output = ContentOf(output);
  if (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0) return ended;
  const std::string end = WIFSIGNALED(ended.status)
                              ? "killed by signal " + std::to_string(WTERMSIG(ended.status))
                              : "exit status " + std::to_string(WEXITSTATUS(ended.status));
  return Fail(ErrorCode::kIo, call.path + ": " + end + ": " + ended.output + ContentOf(errors));
}

// `count` of them, `at_once` at any time.
Result<Json> RunAll(const Call& call, int count, int at_once) {
  std::atomic<int> next = 0;
  std::mutex mutex;
  std::optional<Error> failed;
  Json done = {{"ms", Json::array()}, {"cpuMs", Json::array()}};
  const auto start = Clock::now();
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) {
      auto ended = RunOne(call, i);
      const std::lock_guard lock(mutex);
      if (!ended) {
        if (!failed) failed = std::move(ended.error());
        continue;
      }
      done["ms"].push_back(ended->wall_ms);
      done["cpuMs"].push_back(ended->cpu_ms);
      done["output"] = std::move(ended->output);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < at_once; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  done["seconds"] = MsSince(start) / 1e3;
  if (failed) return Fail(std::move(*failed));
  return done;
}

Result<Json> Run(JsonReader& step) {
  auto run = step.Object("run");
  if (!run) return Fail(ErrorCode::kInvalid, "\"run\" is no object");
  Call call;
  call.path = run->RequiredString("path");
  call.arguments = run->Strings("arguments").value_or(std::vector<std::string>{});
  call.environment = run->Strings("environment").value_or(std::vector<std::string>{});
  call.input = run->String("input").value_or("");
  const auto count = step.Int("count", 1, 1'000'000).value_or(1);
  const auto at_once = step.Int("atOnce", 1, 1000).value_or(1);
  run->Close();
  step.Close();
  RH_TRY(step.status());
  return RunAll(call, static_cast<int>(count), static_cast<int>(at_once));
}

struct Awaited {
  std::string name;
  std::string rdma;  // "": carrier alone
  std::string address;
};

Result<void> WaitFor(const std::string& netns, const std::vector<Awaited>& links) {
  LinuxKernel kernel{Root()};
  const NetNs pod_ns = RH_TRY(kernel.OpenNetns(netns));
  const auto pod = RH_TRY(kernel.OpenRoute(pod_ns));
  const auto deadline = Clock::now() + kWait;
  for (const Awaited& awaited : links) {
    const auto link = RH_TRY(pod->FindLink(awaited.name));
    if (!link) return Fail(ErrorCode::kNotFound, awaited.name + " is not in the pod");
    if (!RH_TRY(pod->WaitCarrier(link->index, deadline)))
      return Fail(ErrorCode::kTimeout, awaited.name + " has no carrier");
    if (awaited.rdma.empty()) continue;
    const auto address = IpAddress::Parse(awaited.address);
    if (!address) return Fail(ErrorCode::kInvalid, "'" + awaited.address + "' is no address");
    const GidRequest gid{GidOf(*address), GidType::kRoceV2, awaited.name};
    if (!RH_TRY(kernel.WaitGid(pod_ns, awaited.rdma, gid, deadline)))
      return Fail(ErrorCode::kTimeout, awaited.name + " has no GID of its address");
  }
  return {};
}

Result<Json> Await(JsonReader& step) {
  auto await = step.Object("await");
  if (!await) return Fail(ErrorCode::kInvalid, "\"await\" is no object");
  const std::string netns = await->RequiredString("netns");
  std::vector<Awaited> links;
  for (JsonReader& link : await->Objects("links")) {
    links.push_back(
        {link.RequiredString("name"), link.String("rdma").value_or(""), link.String("address").value_or("")});
    link.Close();
  }
  await->Close();
  step.Close();
  RH_TRY(step.status());
  const auto start = Clock::now();
  RH_TRY(WaitFor(netns, links));
  return Json{{"ms", {MsSince(start)}}};
}

// Runs in this process: after an ADD the kernel still has deferred work, and the time of a check changes the
// DEL after it.
Result<Json> State(JsonReader& step) {
  auto state = step.Object("state");
  if (!state) return Fail(ErrorCode::kInvalid, "\"state\" is no object");
  const std::string path = state->String("netns").value_or("");
  state->Close();
  step.Close();
  RH_TRY(step.status());
  LinuxKernel kernel{Root()};
  const NetNs ns = path.empty() ? RH_TRY(kernel.HostNetns()) : RH_TRY(kernel.OpenNetns(path));
  const auto route_api = RH_TRY(kernel.OpenRoute(ns));
  Json done = {{"links", Json::array()}, {"routes", Json::array()}, {"rules", Json::array()}};
  std::map<int, std::string> names;
  for (const Link& link : RH_TRY(route_api->ListLinks())) {
    auto addresses = Json::array();
    for (const LinkAddress& address : RH_TRY(route_api->ListAddresses(link.index))) {
      if (address.prefix.address.IsV4()) addresses.push_back(address.prefix.ToString());
    }
    names[link.index] = link.name;
    done["links"].push_back({{"name", link.name}, {"mtu", link.mtu}, {"addresses", std::move(addresses)}});
  }
  for (const Route& route : RH_TRY(route_api->ListRoutes(AF_INET, 0))) {
    done["routes"].push_back({{"to", route.destination.ToString()},
                              {"via", route.gateway ? route.gateway->ToString() : ""},
                              {"link", names[route.link]},
                              {"table", route.table}});
  }
  for (const Rule& rule : RH_TRY(route_api->ListRules(AF_INET))) {
    done["rules"].push_back(
        {{"from", rule.from ? rule.from->ToString() : ""}, {"oif", rule.oif}, {"table", rule.table}});
  }
  return done;
}

int Main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto document = JsonDocument::Parse(line, "a step");
    if (!document) {
      std::cerr << "bench_runner: " << Describe(document.error()) << "\n";
      return 1;
    }
    JsonReader step = document->Root();
    auto done = step.Has("await") ? Await(step) : step.Has("state") ? State(step) : Run(step);
    if (!done) done = Json{{"error", Describe(done.error())}};
    std::cout << done->dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace railhead::bench

int main() {
  return railhead::bench::Main();
}
