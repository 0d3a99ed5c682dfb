#include "tests/system/cri/container_log.h"

namespace railhead::testing {
namespace {

// Removes the part before the next blank from `rest` and returns it; empty without a blank.
std::string_view NextWord(std::string_view* rest) {
  const std::size_t blank = rest->find(' ');
  if (blank == std::string_view::npos) return {};
  const std::string_view word = rest->substr(0, blank);
  rest->remove_prefix(blank + 1);
  return word;
}

}  // namespace

Result<ContainerOutput> ParseContainerLog(std::string_view log) {
  ContainerOutput output;
  int number = 0;
  for (std::size_t end = 0; (end = log.find('\n')) != std::string_view::npos; log.remove_prefix(end + 1)) {
    const std::string_view line = log.substr(0, end);
    ++number;
    std::string_view text = line;
    const std::string_view time = NextWord(&text);
    const std::string_view stream = NextWord(&text);
    const std::string_view tags = NextWord(&text);
    const std::string_view tag = tags.substr(0, tags.find(':'));
    if (time.empty() || (stream != "stdout" && stream != "stderr") || (tag != "F" && tag != "P")) {
      return Fail(ErrorCode::kMalformed, "line " + std::to_string(number) +
                                             " of the container's log is no entry: '" + std::string(line) +
                                             "'");
    }
    std::string& to = stream == "stdout" ? output.out : output.err;
    to += text;
    if (tag == "F") to += '\n';
  }
  return output;
}

}  // namespace railhead::testing
