// What `railctl ipam import` reads: whereabouts' objects as kubectl prints them.
#include "ipam/store/import_state.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  const auto all = railhead::ipam::ReadWhereabouts(railhead::fuzz::TextOf(data, size), "state", "net");
  if (!all) return 0;
  for (const auto& one : *all) {
    Require(one.subnet.Contains(one.address), "an address is one of its subnet");
    Require(!one.owner.container.empty(), "an address has an owner");
  }
  return 0;
}
