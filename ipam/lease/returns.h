// Returns: blocks that a node does not need go back to the cluster.
//
// A block is marked in the book first, in the same transaction that sees that no address of it
// is held or resting; from then on nothing of it is handed out. Then its record is removed from
// the cluster store, and then it is forgotten: killed anywhere, the next step goes on.
// What this node had before it lost its store is given back when the machine was restarted since,
// or after reclaimSeconds. What another node has is forgotten when nothing of it is in use here.
// Errors: as ClusterStore and NodeBook. Threads: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ipam/lease/context.h"

namespace railhead {

class Returns {
 public:
  explicit Returns(LeaseContext& context) : context_(context) {}

  // How many addresses of the usable blocks are free, by pool.
  Result<void> Count();
  [[nodiscard]] const std::map<std::string, std::uint64_t>& free() const { return free_; }

  // Marks what is not needed, and gives back what is marked.
  Result<void> Run();

 private:
  Result<void> RetireEmpty();
  Result<void> RetireFormer();
  Result<void> ForgetLost();
  Result<void> GiveBack(const NodeBlock& block);
  Result<bool> Retire(const NodeBlock& block);

  LeaseContext& context_;
  std::map<BlockName, std::uint64_t> taken_;
  std::map<std::string, std::uint64_t> free_;
};

}  // namespace railhead
