// MappedBuffer: memory that a NIC reads and writes, on pages of its own.
//
// Pages that are registered may be kept from children of the process (ibv_fork_init(3)); nothing else may lie
// on them. Ownership: the pages. Moves. Threads: a value. Errors: what the kernel refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "netns/base/result.h"

namespace railhead {

class MappedBuffer {
 public:
  MappedBuffer() = default;
  // Zeros.
  static Result<MappedBuffer> Make(std::size_t bytes);

  [[nodiscard]] std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory_.get()); }
  [[nodiscard]] std::size_t size() const { return memory_.get_deleter().bytes; }

 private:
  struct Unmapper {
    Unmapper() : Unmapper(0) {}
    explicit Unmapper(std::size_t size) : bytes(size) {}
    void operator()(void* memory) const;

    std::size_t bytes;
  };
  std::unique_ptr<void, Unmapper> memory_;
};

}  // namespace railhead
