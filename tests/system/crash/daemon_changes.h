// Which system calls of a traced process change something outside the process.
//
// This examines the call's arguments, unlike OnlyLooks() of tracer.h: a daemon's threads make thousands of
// calls in any order, and only a few matter. Changes are: making, writing, renaming and removing files;
// binding and connecting sockets; sending over unix sockets; netlink requests other than dumps.
// Threads: the tracer's. Source: the calls' manual pages; proc(5) for descriptors.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace railhead::crash {

struct SystemCall {
  std::uint64_t number = 0;
  const std::uint64_t* arguments = nullptr;  // six
};

// "rename /run/railhead/health.json", with the path relative to `below`, a directory with its slash. nullopt:
// the call changes nothing below it. `pid` has stopped before the call.
std::optional<std::string> ChangeBy(pid_t pid, const SystemCall& call, const std::string& below);

}  // namespace railhead::crash
