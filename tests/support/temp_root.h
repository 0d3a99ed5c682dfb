// A Root in a temporary directory that is removed with the object. It has its own boot id, and functions for
// files there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/root.h"

namespace railhead::testing {

class TempRoot {
 public:
  // kMemory: on a file system in memory, if there is one. Programs may not be run there.
  enum class Where { kDisk, kMemory };

  explicit TempRoot(Where where = Where::kDisk);
  TempRoot(const TempRoot&) = delete;
  TempRoot& operator=(const TempRoot&) = delete;
  ~TempRoot();

  [[nodiscard]] Root root() const { return Root(directory_); }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  // `path` is absolute as in production.
  void Write(const std::string& path, std::string_view content, bool executable = false) const;
  [[nodiscard]] std::string Read(const std::string& path) const;  // "" when it is not there
  [[nodiscard]] bool Exists(const std::string& path) const;

 private:
  std::string directory_;
};

// Files and links below `directory`, sorted, relative; directories are left out.
std::vector<std::string> FilesBelow(const std::string& directory);
void WriteFileAt(const std::string& path, std::string_view content, bool executable = false);
std::string ReadFileAt(const std::string& path);

}  // namespace railhead::testing
