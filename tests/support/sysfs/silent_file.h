// A file whose readers wait: an attribute of a driver that does not answer.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/unique_fd.h"

namespace railhead::testing {

class SilentFile {
 public:
  // `path` may lead through links. A file that does not exist is gone again afterwards.
  explicit SilentFile(const std::string& path)
      : path_(std::filesystem::weakly_canonical(path)), content_(ReadFile(path_).value_or(std::nullopt)) {
    std::filesystem::remove(path_);
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0) << path_;
    // A pipe with a writer that does not write.
    writer_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    EXPECT_TRUE(writer_.valid()) << path_;
  }
  SilentFile(const SilentFile&) = delete;
  SilentFile& operator=(const SilentFile&) = delete;
  ~SilentFile() {
    std::filesystem::remove(path_);
    if (content_) std::ofstream(path_) << *content_;
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const std::optional<std::string> content_;
  UniqueFd writer_;
};

}  // namespace railhead::testing
