#include "tests/support/temp_root.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

namespace railhead::testing {
namespace fs = std::filesystem;

TempRoot::TempRoot(Where where) {
  std::error_code none;
  const bool memory = where == Where::kMemory && fs::is_directory("/dev/shm", none);
  std::string name = (memory ? fs::path("/dev/shm") : fs::temp_directory_path()) / "railhead-root-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  directory_ = name;
  Write("/proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n");
}

TempRoot::~TempRoot() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

void TempRoot::Write(const std::string& path, std::string_view content, bool executable) const {
  WriteFileAt(directory_ + path, content, executable);
}

std::string TempRoot::Read(const std::string& path) const {
  return ReadFileAt(directory_ + path);
}

bool TempRoot::Exists(const std::string& path) const {
  return fs::exists(fs::symlink_status(directory_ + path));
}

std::vector<std::string> FilesBelow(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(directory, none)) {
    if (!entry.is_symlink() && entry.is_directory()) continue;
    files.push_back(entry.path().lexically_relative(directory));
  }
  std::sort(files.begin(), files.end());
  return files;
}

void WriteFileAt(const std::string& path, std::string_view content, bool executable) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream file(path, std::ios::trunc | std::ios::binary);
  file << content;
  file.close();
  if (!file) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    std::abort();
  }
  if (executable) fs::permissions(path, fs::perms::owner_all);
}

std::string ReadFileAt(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace railhead::testing
