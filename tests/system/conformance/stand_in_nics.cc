// stand_in_nics: NICs for plugins that need hardware, on machines without any.
//
//   `stand_in_nics serve DIRECTORY N` makes nic0 to nicN-1 in this network namespace, and a sysfs below
//   DIRECTORY that has them on PCI. It prints their PCI addresses and continues as a daemon.
//
//   `stand_in_nics await I` waits until nic I is in this namespace. Then it restores the NIC's name and
//   settings.
//
// They are veth pairs. When a namespace ends, veths die, while hardware returns to the host under its present
// name. The daemon imitates that by making them again. It ends with the process that waits for orphans
// (cni-conformance). Exit status: 0; 1; 2 wrong command line.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "netns/base/text.h"
#include "tests/support/netns/stand_in.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {
namespace {

constexpr std::chrono::milliseconds kPoll{10};
constexpr const char* kInPod = "eth0";

std::string NameOf(int nic) {
  return "nic" + std::to_string(nic);
}

MacAddress MacOf(int nic) {
  return MacAddress{{0x02, 0x00, 0x5e, 0x10, 0x00, static_cast<std::uint8_t>(nic)}};
}

// A pair whose other end is up, so that the device has carrier in every namespace.
void Make(const NetNs& host, int nic, const std::string& name) {
  const auto route = OpenRoute(host);
  const std::string wire = NameOf(nic) + "-wire";
  const int index = AddVeth(host, name, host, wire);
  LinkChange change;
  change.mac = MacOf(nic);
  Must(route->ChangeLink(index, change));
  const int other = GetLink(*route, wire).index;
  change.mac->bytes[4] = 1;
  Must(route->ChangeLink(other, change));
  BringUp(*route, other);
}

// The kernel chooses another name only when the old one is in use (net/core/dev.c).
void BringBack(const NetNs& host, int nic) {
  const auto route = OpenRoute(host);
  if (Must(route->FindLink(NameOf(nic) + "-wire"))) return;
  const bool taken = Must(route->FindLink(kInPod)).has_value();
  Make(host, nic, taken ? "dev" + std::to_string(nic) : kInPod);
}

int Serve(const std::string& directory, int count) {
  FakeSysfs sysfs(directory);
  const NetNs host = Must(NetNs::Current());
  for (int i = 0; i < count; ++i) {
    const std::string address = std::string("0000:4") + "0123456789abcdef"[i] + ":00.0";
    sysfs.AddPf({.address = address, .netdev = NameOf(i), .total_vfs = 0, .driver = "igb"});
    Make(host, i, NameOf(i));
    (void)std::printf("%s\n", address.c_str());
  }
  (void)std::fflush(stdout);
  const pid_t started_by = ::getpid();
  if (::fork() != 0) return 0;
  while (::getppid() == started_by) std::this_thread::sleep_for(kPoll);
  const pid_t guardian = ::getppid();
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  while (::getppid() == guardian) {
    for (int i = 0; i < count; ++i) BringBack(host, i);
    std::this_thread::sleep_for(kPoll);
  }
  ::_exit(0);
}

int Await(int nic) {
  const NetNs host = Must(NetNs::Current());
  const auto route = OpenRoute(host);
  for (const auto limit = NetDeadline(); std::chrono::steady_clock::now() < limit;) {
    for (const auto& link : Must(route->ListLinks())) {
      if (link.mac != MacOf(nic)) continue;
      LinkChange change;
      change.up = false;
      Must(route->ChangeLink(link.index, change));
      change.name = NameOf(nic);
      change.mtu = 1500;
      if (link.name == change.name) change.name.reset();
      Must(route->ChangeLink(link.index, change));
      return 0;
    }
    std::this_thread::sleep_for(kPoll);
  }
  (void)std::fprintf(stderr, "stand_in_nics: %s does not come back\n", NameOf(nic).c_str());
  return 1;
}

int Main(int argc, char** argv) {
  const auto number = argc > 2 ? ParseInt(argv[argc - 1]) : std::nullopt;
  if (number && argc == 4 && std::strcmp(argv[1], "serve") == 0 && *number >= 1 && *number <= 16) {
    return Serve(argv[2], static_cast<int>(*number));
  }
  if (number && argc == 3 && std::strcmp(argv[1], "await") == 0 && *number >= 0 && *number < 16) {
    return Await(static_cast<int>(*number));
  }
  (void)std::fputs("usage: stand_in_nics serve DIRECTORY N | await I    (N: 1 to 16)\n", stderr);
  return 2;
}

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  return railhead::testing::Main(argc, argv);
}
