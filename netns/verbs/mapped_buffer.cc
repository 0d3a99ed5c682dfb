#include "netns/verbs/mapped_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <string>

namespace railhead {

void MappedBuffer::Unmapper::operator()(void* memory) const {
  (void)munmap(memory, bytes);
}

Result<MappedBuffer> MappedBuffer::Make(std::size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return FailSys(errno, "making a buffer of " + std::to_string(bytes) + " bytes");
  MappedBuffer buffer;
  buffer.memory_ = {memory, Unmapper{bytes}};
  return buffer;
}

}  // namespace railhead
