// NodeBook: what the leaser keeps on its node, and what it asks about addresses there.
//
// OpenNodeBook() keeps it in the node's address store. Each call is one transaction,
// durable when it returns; the store is open during the call only.
// Errors: as AddressStore. Threads: one caller at a time; one leaser per node.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipam/store/address_record.h"
#include "ipam/store/node_blocks.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

struct BlockName {
  std::string pool;
  std::uint64_t index = 0;
  auto operator<=>(const BlockName&) const = default;
};
inline BlockName NameOf(const NodeBlock& block) {
  return {block.pool, block.index};
}

struct BookState {
  std::optional<NodeLease> lease;
  std::vector<NodeBlock> blocks;
};

struct BookChange {
  std::optional<NodeLease> lease;
  std::vector<NodeBlock> put;
  std::vector<BlockName> erase;
};

class NodeBook {
 public:
  NodeBook() = default;
  NodeBook(const NodeBook&) = delete;
  NodeBook& operator=(const NodeBook&) = delete;
  virtual ~NodeBook() = default;

  virtual Result<BookState> Read() = 0;
  virtual Result<void> Write(const BookChange& change) = 0;
  // How many addresses of each block are held or resting.
  virtual Result<std::vector<std::uint64_t>> Taken(const std::vector<NodeBlock>& blocks) = 0;
  // Which are held.
  virtual Result<std::vector<AddressRecord>> Held(const NodeBlock& block) = 0;
  // Makes the block kReturning, unless an address of it is held or resting: false.
  virtual Result<bool> Retire(const NodeBlock& block) = 0;
};

// `rest`: after it a released address is free again. `clocks`: as AddressStore::Open().
std::unique_ptr<NodeBook> OpenNodeBook(const Root& root, std::chrono::seconds rest, ClockSource clocks = {});

}  // namespace railhead
