#include "netns/nl/bpf_programs.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace railhead::nl {
namespace {

constexpr std::uint32_t kMostPrograms = 64;  // BPF_MPROG_MAX of include/linux/bpf_mprog.h

// Answers what the system call does, or -1. Bytes behind the last field that a command knows have to be zero.
long Bpf(bpf_cmd command, bpf_attr* attributes) {
  return ::syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

bpf_attr Zeroed() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  return attributes;
}

}  // namespace

Result<std::vector<std::uint32_t>> ListTcxPrograms(int index, int attach_type) {
  std::vector<std::uint32_t> programs(kMostPrograms);
  bpf_attr attributes = Zeroed();
  attributes.query.target_fd = static_cast<std::uint32_t>(index);  // target_ifindex, in newer headers
  attributes.query.attach_type = static_cast<std::uint32_t>(attach_type);
  attributes.query.prog_ids = reinterpret_cast<std::uintptr_t>(programs.data());
  attributes.query.prog_cnt = kMostPrograms;
  if (Bpf(BPF_PROG_QUERY, &attributes) != 0) return FailSys(errno, "bpf");
  programs.resize(attributes.query.prog_cnt);
  return programs;
}

Result<void> DetachTcxProgram(int index, int attach_type, std::uint32_t program) {
  const UniqueFd fd = RH_TRY(OpenProgram(program));
  bpf_attr attributes = Zeroed();
  attributes.target_fd = static_cast<std::uint32_t>(index);
  attributes.attach_bpf_fd = static_cast<std::uint32_t>(fd.get());
  attributes.attach_type = static_cast<std::uint32_t>(attach_type);
  if (Bpf(BPF_PROG_DETACH, &attributes) != 0) return FailSys(errno, "bpf");
  return {};
}

Result<UniqueFd> OpenProgram(std::uint32_t program) {
  bpf_attr attributes = Zeroed();
  attributes.prog_id = program;
  const long fd = Bpf(BPF_PROG_GET_FD_BY_ID, &attributes);
  if (fd < 0) return FailSys(errno, "bpf");
  return UniqueFd(static_cast<int>(fd));
}

}  // namespace railhead::nl
