#include "deviceplugin/tools/rdma_test/end_process.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <utility>

#include "netns/base/bytes.h"
#include "netns/ns/run_in_namespace.h"

namespace railhead::rdma_test {
namespace {

using railhead::bytes::Reader;
using railhead::bytes::Writer;

constexpr std::size_t kMaxReport = UINT16_MAX;

std::string EncodeResult(const Result<std::string>& result) {
  Writer to;
  to.Put(static_cast<std::uint8_t>(result ? 1 : 0));
  if (result) {
    to.PutText<std::uint16_t>(*result);
    return to.bytes();
  }
  to.Put(static_cast<std::uint8_t>(result.error().code));
  to.Put(static_cast<std::uint32_t>(result.error().sys_errno));
  to.PutText<std::uint16_t>(result.error().message);
  to.PutText<std::uint16_t>(result.error().hint);
  return to.bytes();
}

Result<std::string> DecodeResult(const std::string& bytes) {
  Reader from(bytes);
  if (from.Number<std::uint8_t>() == 1) {
    std::string value = from.Text<std::uint16_t>(kMaxReport);
    if (from.Done()) return value;
  } else {
    Error error;
    error.code = static_cast<ErrorCode>(from.Number<std::uint8_t>());
    error.sys_errno = static_cast<int>(from.Number<std::uint32_t>());
    error.message = from.Text<std::uint16_t>(kMaxReport);
    error.hint = from.Text<std::uint16_t>(kMaxReport);
    if (from.Done()) return Fail(std::move(error));
  }
  return Fail(ErrorCode::kInternal, "the process of one end has died", "look at the kernel's log for it");
}

[[noreturn]] void Child(const NetNs* ns, pid_t parent, int out,
                        const std::function<Result<std::string>()>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before the request
  const Result<void> entered = ns == nullptr ? Result<void>() : EnterForGood(*ns);
  const std::string bytes = EncodeResult(entered ? work() : Fail(entered.error()));
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t size = write(out, rest.data(), rest.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) _exit(1);
    rest.remove_prefix(static_cast<std::size_t>(size));
  }
  _exit(0);
}

}  // namespace

Result<EndProcess> EndProcess::Start(const NetNs* ns, const std::function<Result<std::string>()>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FailSys(errno, "making a pipe");
  UniqueFd in(ends[0]);
  const UniqueFd out(ends[1]);
  if (fcntl(in.get(), F_SETFL, O_NONBLOCK) != 0) return FailSys(errno, "making a pipe that does not block");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return FailSys(errno, "forking a process for one end of the test");
  if (child == 0) {
    in.Reset();
    Child(ns, parent, out.get(), work);
  }
  return EndProcess(child, std::move(in));
}

EndProcess::EndProcess(EndProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::move(other.pipe_)), said_(std::move(other.said_)) {}

EndProcess::~EndProcess() {
  if (pid_ < 0) return;
  (void)kill(pid_, SIGKILL);
  Reap();
}

void EndProcess::Reap() {
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

std::optional<Result<std::string>> EndProcess::Read() {
  for (;;) {
    char piece[4096];
    const ssize_t size = read(pipe_.get(), piece, sizeof(piece));
    if (size > 0) {
      said_.append(piece, static_cast<std::size_t>(size));
      continue;
    }
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return std::nullopt;
    break;
  }
  // The process closes the pipe when it ends.
  Reap();
  return DecodeResult(said_);
}

}  // namespace railhead::rdma_test
