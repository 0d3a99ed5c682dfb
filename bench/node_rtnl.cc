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
#include <memory>
#include <new>
#include <thread>

#include "bench/node.h"
#include "netns/kernel.h"

namespace railhead::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Work = std::function<Result<void>()>;  // one piece, after which the next may be of another work

constexpr const char* kDevice = "lo";
// Short turns, so that a machine that becomes busy for a second is so for all.
constexpr int kChangesPerTurn = 25;
constexpr int kTurnsPerRound = 6;
// Changes in a row would be a load themselves, and all meet the same moment.
constexpr auto kBetweenChanges = std::chrono::milliseconds(1);
constexpr auto kPiece = std::chrono::milliseconds(1);
constexpr std::array<const char*, 4> kBeside = {"nothing", "a process that computes",
                                                "a process that lists links", "scrapes"};

// The load beside the measurement: one process, which repeats one of several works. As a process it shares
// only the kernel and the processors with the measuring one. Threads would also wait for each other's memory
// map. Start it before any thread exists.
class Load {
 public:
  static Result<std::unique_ptr<Load>> Start(const std::vector<Work>& works) {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return FailSys(errno, "sharing memory with a process");
    std::unique_ptr<Load> load(new Load(new (memory) Shared));
    const pid_t parent = ::getpid();
    load->pid_ = ::fork();
    if (load->pid_ < 0) return FailSys(errno, "starting a process");
    if (load->pid_ == 0) Run(works, parent, load->shared_);
    return load;
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() {
    if (pid_ > 0) {
      (void)::kill(pid_, SIGKILL);
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    (void)::munmap(shared_, sizeof(Shared));
  }

  // Returns when the process does that work.
  Result<void> Switch(std::size_t work) {
    shared_->wanted = work;
    while (shared_->current != work) {
      RH_TRY(Pieces());
      std::this_thread::sleep_for(kPiece);
    }
    return {};
  }
  // Pieces done since the last Switch().
  Result<std::uint64_t> Pieces() {
    if (::waitpid(pid_, nullptr, WNOHANG) != pid_) return shared_->pieces.load();
    pid_ = -1;
    return Fail(ErrorCode::kIo, "the process that is to be measured beside has ended");
  }

 private:
  struct Shared {
    std::atomic<std::size_t> wanted = 0;
    std::atomic<std::size_t> current = 0;
    std::atomic<std::uint64_t> pieces = 0;
  };
  explicit Load(Shared* shared) : shared_(shared) {}

  [[noreturn]] static void Run(const std::vector<Work>& works, pid_t parent, Shared* shared) {
    // The process must not outlive its parent. The loop covers a parent that ended before prctl().
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (::getppid() == parent) {
      const std::size_t wanted = shared->wanted;
      if (shared->current != wanted) {
        shared->pieces = 0;
        shared->current = wanted;
      }
      if (const auto did = works[wanted](); !did) {
        (void)std::fprintf(stderr, "beside a change of a link: %s\n", Describe(did.error()).c_str());
        break;
      }
      ++shared->pieces;
    }
    ::_exit(1);  // without the destructors of what is the parent's
  }

  Shared* shared_;
  pid_t pid_ = -1;
};

Result<void> DoNothing() {
  std::this_thread::sleep_for(kPiece);
  return {};
}

Result<void> Compute() {
  const auto end = Clock::now() + kPiece;
  while (Clock::now() < end) {
  }
  return {};
}

// Its socket is of the process that lists.
Work ListLinks(Kernel& kernel, const NetNs& host) {
  return [&kernel, &host, route = std::shared_ptr<RouteApi>()]() mutable -> Result<void> {
    if (!route) route = RH_TRY(kernel.OpenRoute(host));
    RH_TRY(route->ListLinks());
    return {};
  };
}

Result<void> SetAlias(RouteApi* route, int index, const std::string& alias) {
  LinkChange change;
  change.alias = alias;
  return route->ChangeLink(index, change);
}

// Until there are enough changes, and the load has done a whole piece of its work.
Result<void> Turn(RouteApi* route, int index, Load* load, const char* group, const char* beside,
                  Samples* samples) {
  std::uint64_t pieces = 0;
  for (int i = 0; i < kChangesPerTurn || pieces == 0; ++i) {
    std::this_thread::sleep_for(kBetweenChanges);
    const auto before = Clock::now();
    RH_TRY(SetAlias(route, index, i % 2 == 0 ? "railhead-bench" : "bench-railhead"));
    const std::chrono::duration<double, std::micro> took = Clock::now() - before;
    samples->Add(group, beside, "a change of a link", "us", took.count());
    pieces = RH_TRY(load->Pieces());
  }
  return {};
}

}  // namespace

Result<void> MeasureRtnl(Kernel& kernel, const char* group, int rounds, const Work& scrape,
                         Samples* samples) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto load = RH_TRY(Load::Start({DoNothing, Compute, ListLinks(kernel, host), scrape}));
  const auto route = RH_TRY(kernel.OpenRoute(host));
  const auto link = RH_TRY(route->FindLink(kDevice));
  if (!link) return Fail(ErrorCode::kNotFound, std::string("there is no ") + kDevice);
  const auto turns = [&]() -> Result<void> {
    for (int turn = 0; turn < rounds * kTurnsPerRound; ++turn) {
      for (std::size_t work = 0; work < kBeside.size(); ++work) {
        RH_TRY(load->Switch(work));
        RH_TRY(Turn(route.get(), link->index, load.get(), group, kBeside[work], samples));
      }
    }
    return {};
  };
  auto measured = turns();
  RH_TRY(SetAlias(route.get(), link->index, link->alias));
  return measured;
}

}  // namespace railhead::bench
