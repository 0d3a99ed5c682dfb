#include "tests/system/hardening/outside.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace fs = std::filesystem;
namespace {

std::string LineOf(const fs::path& path, const std::string& name) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return name + " is gone";
  char facts[96];
  (void)std::snprintf(facts, sizeof facts, " %06o %u:%u links %u ", static_cast<unsigned>(status.st_mode),
                      status.st_uid, status.st_gid, static_cast<unsigned>(status.st_nlink));
  std::string line = name + facts;
  if (S_ISREG(status.st_mode)) line += ReadFileAt(path);
  if (S_ISLNK(status.st_mode)) line += fs::read_symlink(path).string();
  return line;
}

[[noreturn]] void Die(const std::string& what) {
  std::perror(what.c_str());
  std::abort();
}

}  // namespace

std::string ListingOf(const std::string& directory) {
  std::vector<std::string> lines = {LineOf(directory, ".")};
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(directory, none))
    lines.push_back(LineOf(entry.path(), entry.path().lexically_relative(directory)));
  std::sort(lines.begin(), lines.end());
  std::string listing;
  for (const std::string& line : lines) listing += line + "\n";
  return listing;
}

Outside::Outside(std::string directory) : directory_(std::move(directory)) {
  for (const char* name : {"victim", "nccl.conf", "nccl.conf.new", "topology.xml", "ucx.conf",
                           "half.json.new", "old", "health.json", "store.mdb", "lock"}) {
    WriteFileAt(directory_ + "/" + name, std::string("mine: ") + name);
  }
}

const char* NameOf(Planted kind) {
  return kind == Planted::kLink ? "link" : kind == Planted::kHardLink ? "hard link" : "pipe";
}

void Plant(Planted kind, const std::string& path, const Outside& outside) {
  fs::create_directories(fs::path(path).parent_path());
  fs::remove_all(path);
  const int failed = kind == Planted::kLink       ? ::symlink(outside.Victim().c_str(), path.c_str())
                     : kind == Planted::kHardLink ? ::link(outside.Victim().c_str(), path.c_str())
                                                  : ::mkfifo(path.c_str(), 0600);
  if (failed != 0) Die("planting at " + path);
}

void PlantFolder(const std::string& path, const Outside& outside) {
  fs::create_directories(fs::path(path).parent_path());
  fs::remove_all(path);
  if (::symlink(outside.directory().c_str(), path.c_str()) != 0) Die("planting at " + path);
}

std::vector<std::string> StateFiles(const std::string& prefix, const std::vector<std::string>& directories) {
  std::vector<std::string> files;
  for (const std::string& directory : directories) {
    for (const std::string& file : FilesBelow(prefix + directory)) files.push_back(directory + "/" + file);
  }
  return files;
}

}  // namespace railhead::testing
