#include "bench/load_process.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace railhead::bench {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};
constexpr auto kLook = std::chrono::milliseconds(1);

}  // namespace

struct LoadProcess::Shared {
  std::atomic<std::size_t> wanted = kNone;
  std::atomic<std::size_t> current = kNone;
  std::atomic<std::uint64_t> pieces = 0;
  std::atomic<std::int64_t> nanoseconds = 0;
  std::array<char, 512> error{};  // written before the process ends
};

Result<LoadProcess> LoadProcess::Start(const std::vector<Work>& works) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return FailSys(errno, "sharing memory with a process");
  auto* shared = new (memory) Shared;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) Run(works, parent, shared);
  if (pid > 0) return LoadProcess(shared, pid);
  const int reason = errno;
  (void)::munmap(memory, sizeof(Shared));
  return FailSys(reason, "starting a process");
}

LoadProcess::LoadProcess(LoadProcess&& other) noexcept
    : shared_(std::exchange(other.shared_, nullptr)), pid_(std::exchange(other.pid_, -1)) {}

LoadProcess::~LoadProcess() {
  if (pid_ > 0) {
    (void)::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (shared_ != nullptr) (void)::munmap(shared_, sizeof(Shared));
}

void LoadProcess::Run(const std::vector<Work>& works, pid_t parent, Shared* shared) {
  // Not to outlive who measures, who may have gone before this is heard.
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (::getppid() == parent) {
    const std::size_t wanted = shared->wanted;
    if (shared->current != wanted) {
      shared->pieces = 0;
      shared->nanoseconds = 0;
      shared->current = wanted;
    }
    if (wanted >= works.size()) {
      std::this_thread::sleep_for(kLook);
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    if (const auto did = works[wanted](); !did) {
      (void)std::snprintf(shared->error.data(), shared->error.size(), "%s", Describe(did.error()).c_str());
      break;
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    shared->nanoseconds += took.count();
    ++shared->pieces;
  }
  ::_exit(1);  // without the destructors of what is the parent's
}

Result<void> LoadProcess::Check() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != pid_) return {};
  pid_ = -1;
  const std::string error = shared_->error.data();
  return Fail(ErrorCode::kIo, "the process that is to be measured beside has ended" +
                                  (error.empty() ? std::string() : ": " + error));
}

Result<void> LoadProcess::Switch(std::size_t work) {
  shared_->wanted = work;
  while (shared_->current != work) {
    RH_TRY(Check());
    std::this_thread::sleep_for(kLook);
  }
  return {};
}

Result<LoadProcess::Done> LoadProcess::Progress() {
  RH_TRY(Check());
  return Done{shared_->pieces, std::chrono::nanoseconds(shared_->nanoseconds)};
}

}  // namespace railhead::bench
