// kubelet's device checkpoint: another program's file.
#include "cni/state/kubelet_checkpoint.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)railhead::ParseCheckpoint(railhead::fuzz::TextOf(data, size), "checkpoint", "uid-1");
  return 0;
}
