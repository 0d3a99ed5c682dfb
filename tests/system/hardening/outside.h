// A folder outside of Railhead's state, to which whatever is planted leads, and whether it is still as it
// was.
#pragma once

#include <string>
#include <vector>

namespace railhead::testing {

// Names, kinds, modes, owners, link counts, targets and contents of all below `directory`, as text.
std::string ListingOf(const std::string& directory);

class Outside {
 public:
  // Makes it, with files of the names that Railhead's own files have.
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

// Puts it at `path`, in the place of what is there; its folder is made.
void Plant(Planted kind, const std::string& path, const Outside& outside);
// A link to the folder outside, in the place of what is there.
void PlantFolder(const std::string& path, const Outside& outside);

// Files and links in `directories` (below `prefix`), as paths behind `prefix`.
std::vector<std::string> StateFiles(const std::string& prefix, const std::vector<std::string>& directories);

}  // namespace railhead::testing
