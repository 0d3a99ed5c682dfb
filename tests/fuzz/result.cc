// CNI results, as plugins before us and IPAM plugins print them.
#include "cni/protocol/cni_result.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  const auto result = railhead::ParseCniResult(railhead::fuzz::TextOf(data, size), "result");
  if (!result) return 0;
  for (const auto& version : railhead::SupportedCniVersions()) {
    const std::string text = railhead::CniResultJson(*result, version);
    const auto again = railhead::ParseCniResult(text, "our own result");
    Require(again.has_value(), "what we print of an accepted result is accepted");
    Require(railhead::CniResultJson(*again, version) == text, "printing it again changes nothing");
  }
  return 0;
}
