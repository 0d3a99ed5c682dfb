#include "deviceplugin/tools/rdma_test/interrupts.h"

#include <netinet/tcp.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace railhead::rdma_test {

Result<Interrupts> Interrupts::Catch() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, one);
  UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return FailSys(errno, "making a descriptor for signals");
  if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) return FailSys(errno, "holding signals back");
  return Interrupts(std::move(fd));
}

Interrupts::Interrupts(Interrupts&& other) noexcept : fd_(std::move(other.fd_)) {}

Interrupts::~Interrupts() {
  if (!fd_.valid()) return;
  sigset_t signals;
  sigemptyset(&signals);
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, one);
  // Discard pending signals, which Interrupts has reported. Otherwise they would end the program before its
  // report.
  const timespec at_once{};
  while (sigtimedwait(&signals, nullptr, &at_once) > 0) {
  }
  (void)sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace railhead::rdma_test
