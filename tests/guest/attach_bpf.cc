// attach-bpf NETDEV PLACE: attaches a program that drops every packet, and ends; the device keeps it. PLACE
// is xdp, xdp-link, tcx-ingress, tcx-egress or tcx-ingress-link. For a link, the process prints "attached"
// and holds the link until it is killed.
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "netns/base/unique_fd.h"
#include "netns/nl/device_messages.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead {
namespace {

constexpr std::uint32_t kTcxIngress = 46;
constexpr std::uint32_t kTcxEgress = 47;
constexpr int kDropByXdp = 1;  // XDP_DROP
constexpr int kDropByTc = 2;   // TC_ACT_SHOT

int Bpf(bpf_cmd command, bpf_attr* attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, attributes, sizeof(*attributes)));
}

bpf_attr Zeroed() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  return attributes;
}

Result<UniqueFd> Load(bool xdp) {
  const bpf_insn program[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K,
                               .dst_reg = 0,
                               .src_reg = 0,
                               .off = 0,
                               .imm = xdp ? kDropByXdp : kDropByTc},
                              {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  bpf_attr attributes = Zeroed();
  attributes.prog_type = xdp ? BPF_PROG_TYPE_XDP : BPF_PROG_TYPE_SCHED_CLS;
  attributes.insns = reinterpret_cast<std::uintptr_t>(program);
  attributes.insn_cnt = 2;
  attributes.license = reinterpret_cast<std::uintptr_t>("GPL");
  UniqueFd fd(Bpf(BPF_PROG_LOAD, &attributes));
  if (!fd.valid()) return FailSys(errno, "loading a program");
  return fd;
}

Result<void> HoldLink(int index, int program, bool xdp) {
  bpf_attr attributes = Zeroed();
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(program);
  attributes.link_create.target_ifindex = static_cast<std::uint32_t>(index);
  attributes.link_create.attach_type = xdp ? static_cast<std::uint32_t>(BPF_XDP) : kTcxIngress;
  attributes.link_create.flags = xdp ? XDP_FLAGS_SKB_MODE : 0;
  const UniqueFd link(Bpf(BPF_LINK_CREATE, &attributes));
  if (!link.valid()) return FailSys(errno, "making a link");
  std::puts("attached");
  std::fflush(stdout);
  for (;;) ::pause();
}

Result<void> AttachTcx(int index, int program, std::uint32_t type) {
  bpf_attr attributes = Zeroed();
  attributes.target_fd = static_cast<std::uint32_t>(index);
  attributes.attach_bpf_fd = static_cast<std::uint32_t>(program);
  attributes.attach_type = type;
  if (Bpf(BPF_PROG_ATTACH, &attributes) != 0) return FailSys(errno, "attaching the program");
  return {};
}

Result<void> Attach(const std::string& netdev, const std::string& place) {
  const int index = static_cast<int>(::if_nametoindex(netdev.c_str()));
  if (index == 0) return FailSys(errno, netdev);
  const bool xdp = place.rfind("xdp", 0) == 0;
  const UniqueFd program = RH_TRY(Load(xdp));
  if (place.ends_with("-link")) return HoldLink(index, program.get(), xdp);
  if (!xdp) return AttachTcx(index, program.get(), place == "tcx-egress" ? kTcxEgress : kTcxIngress);
  auto socket = RH_TRY(nl::Socket::Open(NETLINK_ROUTE));
  nl::Message message = nl::SetXdpMessage(index, *FindDeviceField("xdp.generic"), program.get());
  return socket.Request(message);
}

}  // namespace
}  // namespace railhead

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto attached = railhead::Attach(argv[1], argv[2]);
  if (attached) return 0;
  std::fprintf(stderr, "attach-bpf: %s\n", railhead::Describe(attached.error()).c_str());
  return 1;
}
