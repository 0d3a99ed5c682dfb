// Which system call of a traced process makes the world outside of it another one.
//
// Told from the call's arguments, unlike OnlyLooks() of tracer.h: a daemon's threads make
// thousands of calls in no fixed order, and only few of them matter. Files that are made,
// written, renamed or removed, sockets that are bound or connected, what is sent over unix
// sockets, and netlink requests that are no dumps.
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

// "rename /run/railhead/health.json", the path as below `below`, a directory with its slash;
// nullopt: it changes nothing, or nothing there. `pid` stands before the call.
std::optional<std::string> ChangeBy(pid_t pid, const SystemCall& call, const std::string& below);

}  // namespace railhead::crash
