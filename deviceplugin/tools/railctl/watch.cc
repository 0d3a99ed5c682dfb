// --watch: a report again and again.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/print.h"
#include "deviceplugin/tools/rdma_test/interrupts.h"

namespace railhead::railctl {
namespace {

// Collects the text that stdio writes to `standard` (stdout or stderr) until Take().
class CapturedStream {
 public:
  explicit CapturedStream(FILE** standard) : standard_(standard), before_(*standard) {
    if (FILE* memory = ::open_memstream(&text_, &size_); memory != nullptr) *standard_ = memory;
  }
  ~CapturedStream() { (void)Take(); }
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;

  std::string Take() {
    if (*standard_ == before_) return {};
    (void)std::fclose(*standard_);
    *standard_ = before_;
    std::string text(text_, size_);
    std::free(text_);
    return text;
  }

 private:
  FILE** const standard_;
  FILE* const before_;
  char* text_ = nullptr;
  std::size_t size_ = 0;
};

struct WatchedReport {
  std::string out;
  std::string err;

  bool operator==(const WatchedReport&) const = default;
};

WatchedReport ReportOf(const std::function<int()>& show) {
  CapturedStream out(&stdout);
  CapturedStream err(&stderr);
  (void)show();
  return {out.Take(), err.Take()};
}

bool Draw(const WatchedReport& report, std::string_view between, bool is_screen) {
  if (is_screen) {
    ClearScreen();
  } else {
    (void)std::fwrite(between.data(), 1, between.size(), stdout);
  }
  (void)std::fputs(report.out.c_str(), stdout);
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  (void)std::fputs(report.err.c_str(), stderr);
  return written;
}

// Whether a signal came within the time.
bool EndsWithin(std::chrono::milliseconds time, const rdma_test::Interrupts& interrupts) {
  pollfd waiting{interrupts.fd(), POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(time.count())) > 0;
}

}  // namespace

CLI::Option* Output::AddWatchTo(CLI::App* command) {
  return command->add_flag("-w,--watch", watch_, "show it again whenever it changes, until Ctrl-C");
}

int Output::Watched(const std::function<int()>& show) const {
  if (!watch_) return show();
  const auto interrupts = rdma_test::Interrupts::Catch();
  if (!interrupts) return Complain(interrupts.error(), kFailed);
  const bool is_screen = is_text() && ::isatty(STDOUT_FILENO) == 1;
  const std::string_view between = is_text() ? "\n" : format_ == "yaml" ? "---\n" : "";
  WatchedReport last;
  bool first = true;
  do {
    WatchedReport report = ReportOf(show);
    if (!first && report == last) continue;
    if (!Draw(report, first ? "" : between, is_screen)) return kFailed;
    last = std::move(report);
    first = false;
  } while (!EndsWithin(kWatchPeriod, *interrupts));
  return kDone;
}

}  // namespace railhead::railctl
