// Which part of the project may include which. Dependencies point one way:
//
//   netns/{base, json, sys, ns, nl, gid, packet, verbs}
//     <- cni/{protocol <- fabric <- state <- nccl <- attachment <- plugin}
//     <- ipam/{store <- plugin}
//     <- deviceplugin/{support, node}
//     <- deviceplugin/services/*
//     <- deviceplugin/{daemon, tools}
//
// daemon and tools never include each other. Services include each other only where the list in
// include_rules.cc says so. Only deviceplugin includes gRPC and its libraries, and only netns includes libnl.
// Threads: pure functions over the file system.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace railhead::testing {

// Why `file` (path from the repository's root) may not have this line. nullopt: it may, or the line does not
// include anything.
std::optional<std::string> IncludeViolation(const std::string& file, const std::string& line);

struct IncludeCheck {
  int files = 0;
  int includes = 0;
  std::vector<std::string> violations;  // "FILE:LINE: why"
  // For the product: which group includes which, and how often; which service includes which.
  std::map<std::pair<std::string, std::string>, int> arrows;
  std::set<std::pair<std::string, std::string>> service_arrows;
};

// All C++ sources below `root`'s parts (netns, cni, ipam, deviceplugin, bench, tests).
IncludeCheck CheckIncludes(const std::string& root);

}  // namespace railhead::testing
