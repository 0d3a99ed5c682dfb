// Late binding: what the CNI plugin and railheadd say to each other.
#include "cni/state/bind_protocol.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string line = railhead::fuzz::TextOf(data, size);
  if (const auto request = railhead::ParseBindRequest(line); request) {
    // A request that was parsed can be formatted and parsed again.
    if (!railhead::ParseBindRequest(railhead::FormatBindRequest(*request).value())) __builtin_trap();
  }
  const auto answer = railhead::ParseBindAnswer(line, {"pod", "container", {"slot-1", "slot-2"}});
  if (answer && answer->size() != 2) __builtin_trap();
  return 0;
}
