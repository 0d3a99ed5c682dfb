// Imports the allocations of another IPAM plugin from its own state, so that a running cluster can change
// plugins. Its pods keep their addresses, and no other pod gets them.
//
// host-local: a directory for each network, a file for each address. The file has the container's id and, in
// a second line, the interface (plugins/ipam/host-local/backend/disk).
//
// whereabouts: its IPPool objects, one, a list, or the output of `kubectl get -o json`. An allocation's key
// is the offset in spec.range.
//
// Errors: kNotFound, kMalformed, kInvalid, naming file, object and key. Threads: pure, but for reading.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ipam/store/store.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct ImportedAddress {
  IpAddress address;
  IpPrefix subnet;  // the pool it belongs to
  AddressOwner owner;
  std::string pod;  // "namespace/name", where the state has it
};

// `subnets`: of the network's configuration; every address has to be in one of them.
Result<std::vector<ImportedAddress>> ReadHostLocal(const std::string& directory, const std::string& network,
                                                   const std::vector<IpPrefix>& subnets);
Result<std::vector<ImportedAddress>> ReadWhereabouts(const std::string& text, const std::string& what,
                                                     const std::string& network);

struct ImportOutcome {
  std::size_t held = 0;        // now, or already, by their owners
  std::size_t kept_away = 0;   // another node's: in quarantine
  std::vector<Error> refused;  // of single addresses: held by another owner, or in their reuse delay
};

// `here`: whether the owner's container is on this node. Addresses of other nodes are in quarantine for
// `away`: their DEL never comes here. Each address is a transaction of its own. A second import changes
// nothing.
ImportOutcome Import(AddressStore& store, const std::vector<ImportedAddress>& addresses,
                     const std::function<bool(const ImportedAddress&)>& here, std::chrono::seconds away);

}  // namespace railhead::ipam
