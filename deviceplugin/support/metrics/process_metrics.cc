#include "deviceplugin/support/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

// The fields of /proc/self/stat behind the command's name, which may contain anything.
// The first is the third of proc(5).
std::vector<std::string> StatFields() {
  const auto text = ReadAttribute("/proc/self/stat");
  if (!text || !*text) return {};
  const std::size_t name_end = (*text)->rfind(") ");
  if (name_end == std::string::npos) return {};
  return Split(std::string_view{**text}.substr(name_end + 2), ' ');
}

std::optional<double> Field(const std::vector<std::string>& fields, std::size_t number) {
  constexpr std::size_t kFirst = 3;
  if (fields.size() <= number - kFirst) return std::nullopt;
  const auto value = ParseInt(fields[number - kFirst]);
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::optional<double> BootTime() {
  const auto text = ReadFile("/proc/stat");
  if (!text || !*text) return std::nullopt;
  const std::string key = "\nbtime ";
  const std::size_t at = (*text)->find(key);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + key.size();
  const auto value = ParseInt((*text)->substr(begin, (*text)->find('\n', begin) - begin));
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

void Append(Exposition* page, MetricType type, std::string_view name, std::string_view help,
            std::optional<double> value) {
  page->Begin(type, name, help);
  if (value) page->Sample({}, *value);
}

std::optional<double> Over(std::optional<double> value, double divisor) {
  return value ? std::optional(*value / divisor) : std::nullopt;
}

}  // namespace

void AppendProcessMetrics(Exposition* page) {
  const auto fields = StatFields();
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto user = Field(fields, 14);
  const auto system = Field(fields, 15);
  const auto cpu = user && system ? std::optional((*user + *system) / ticks) : std::nullopt;
  Append(page, MetricType::kCounter, "process_cpu_seconds", "User and system CPU time spent, in seconds",
         cpu);
  const auto pages = Field(fields, 24);
  const auto page_size = static_cast<double>(::sysconf(_SC_PAGESIZE));
  Append(page, MetricType::kGauge, "process_resident_memory_bytes", "Resident memory size, in bytes",
         pages ? std::optional(*pages * page_size) : std::nullopt);
  Append(page, MetricType::kGauge, "process_virtual_memory_bytes", "Virtual memory size, in bytes",
         Field(fields, 23));
  const auto descriptors = ListDirectory("/proc/self/fd");
  // One of them belongs to the listing.
  const bool listed = descriptors && *descriptors && !(*descriptors)->empty();
  Append(page, MetricType::kGauge, "process_open_fds", "Open file descriptors",
         listed ? std::optional(static_cast<double>((*descriptors)->size() - 1)) : std::nullopt);
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  Append(page, MetricType::kGauge, "process_max_fds", "Most file descriptors that may be open",
         limited ? std::optional(static_cast<double>(limit.rlim_cur)) : std::nullopt);
  const auto boot = BootTime();
  const auto start = Over(Field(fields, 22), ticks);
  Append(page, MetricType::kGauge, "process_start_time_seconds",
         "When the process was started, in seconds since 1970",
         boot && start ? std::optional(*boot + *start) : std::nullopt);
}

}  // namespace railhead
