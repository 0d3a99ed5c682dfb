#include "bench/process_facts.h"

#include <ctime>
#include <optional>
#include <string>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::bench {
namespace {

// The number behind "KEY:" in a file of /proc; 0 when it has none.
Result<double> NumberIn(const std::string& path, const std::string& key) {
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return Fail(ErrorCode::kNotFound, "there is no " + path, "the process has gone: see its log");
  for (const std::string& line : Split(*text, '\n')) {
    if (line.rfind(key + ":", 0) != 0) continue;
    const auto first = line.find_first_of("0123456789");
    if (first == std::string::npos) continue;
    const auto end = line.find_first_not_of("0123456789", first);
    return static_cast<double>(
        ParseInt(line.substr(first, end == std::string::npos ? end : end - first)).value_or(0));
  }
  return 0.0;
}

Result<double> Megabytes(const std::string& path, const std::string& key) {
  return RH_TRY(NumberIn(path, key)) * 1024 / 1e6;
}

std::string ProcOf(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

}  // namespace

Result<ProcessMemory> MemoryOf(pid_t pid) {
  ProcessMemory memory;
  const std::string status = ProcOf(pid) + "/status";
  memory.resident_mb = RH_TRY(Megabytes(status, "VmRSS"));
  memory.anonymous_mb = RH_TRY(Megabytes(status, "RssAnon"));
  memory.threads = static_cast<int>(RH_TRY(NumberIn(status, "Threads")));
  memory.proportional_mb = RH_TRY(Megabytes(ProcOf(pid) + "/smaps_rollup", "Pss"));
  return memory;
}

Result<ProcessTime> TimeOf(pid_t pid) {
  // /proc/PID/stat counts in hundredths of a second, this in nanoseconds.
  clockid_t clock{};
  timespec cpu{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &cpu) != 0)
    return Fail(ErrorCode::kNotFound, "asking for the processor time of process " + std::to_string(pid));
  ProcessTime time;
  time.cpu_ms = static_cast<double>(cpu.tv_sec) * 1e3 + static_cast<double>(cpu.tv_nsec) / 1e6;
  const auto threads = RH_TRY(ListDirectory(ProcOf(pid) + "/task"));
  for (const std::string& thread : threads.value_or(std::vector<std::string>{})) {
    const auto count = NumberIn(ProcOf(pid) + "/task/" + thread + "/status", "voluntary_ctxt_switches");
    if (count) time.wakeups += *count;  // one that has ended meanwhile is no error
  }
  return time;
}

}  // namespace railhead::bench
