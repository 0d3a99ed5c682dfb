// What an endpoint receives on its rail: packets from any host.
#include "deviceplugin/services/reachability/probe_message.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  static const auto keys = railhead::SharedKeys::Parse("00112233445566778899aabbccddeeff", "keys");
  Require(keys && !railhead::reachability::CheckProbe({data, size}, &*keys, {}),
          "nobody guesses a signature");
  const auto message = railhead::reachability::ParseProbe({data, size});
  if (!message) return 0;
  Require(size >= railhead::reachability::kProbeHeader, "a message has its header");
  const auto again = railhead::reachability::ParseProbe(railhead::reachability::BytesOf(*message, size));
  Require(again && *again == *message, "what was read is sent and read again");
  return 0;
}
