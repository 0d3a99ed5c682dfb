// A folder outside Railhead's state. Planted links lead to it, and tests check that it does not change.
#pragma once

#include <string>
#include <vector>

namespace railhead::testing {

// Names, kinds, modes, owners, link counts, targets and contents of everything below `directory`, as text.
std::string ListingOf(const std::string& directory);

class Outside {
 public:
  // Makes the folder, with files that have the names of Railhead's own files.
  explicit Outside(std::string directory);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] std::string Victim() const { return directory_ + "/victim"; }
  [[nodiscard]] std::string Listing() const { return ListingOf(directory_); }

 private:
  std::string directory_;
};

enum class Planted { kLink, kHardLink, kPipe };
inline constexpr Planted kAllPlanted[] = {Planted::kLink, Planted::kHardLink, Planted::kPipe};
const char* NameOf(Planted kind);

// Puts the planted thing at `path`, replacing an existing file. Makes its folder.
void Plant(Planted kind, const std::string& path, const Outside& outside);
// Puts a link to the folder outside at `path`, replacing an existing file.
void PlantFolder(const std::string& path, const Outside& outside);

// Files and links in `directories` (below `prefix`), as paths relative to `prefix`.
std::vector<std::string> StateFiles(const std::string& prefix, const std::vector<std::string>& directories);

}  // namespace railhead::testing
