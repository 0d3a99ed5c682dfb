#include "cni/state/allocation.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/json/record_io.h"

namespace railhead {
namespace {

// Device ids become file names.
Result<std::string> PathOf(const Root& root, const std::string& device_id) {
  const bool safe = !device_id.empty() && device_id.size() <= 63 && device_id[0] != '.' &&
                    std::ranges::all_of(device_id, [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == ':' || c == '.' || c == '-' || c == '_';
                    });
  if (!safe) return Fail(ErrorCode::kInvalid, "'" + device_id + "' is not a device id");
  return paths::Allocations(root) + "/" + device_id + ".json";
}

}  // namespace

Result<std::optional<AllocationRecord>> ReadAllocation(const Root& root, const std::string& device_id) {
  const std::string path = RH_TRY(PathOf(root, device_id));
  const auto text = RH_TRY(ReadRootFile(path));
  if (!text) return std::nullopt;
  return RH_TRY(ParseRecord<AllocationRecord>(*text, path));
}

Result<void> WriteAllocation(const Root& root, const AllocationRecord& record) {
  return WriteAllocations(root, {record});
}

Result<void> WriteAllocations(const Root& root, const std::vector<AllocationRecord>& records) {
  std::vector<std::string> contents;
  std::vector<FileContent> files;
  contents.reserve(records.size());
  files.reserve(records.size());
  for (const AllocationRecord& record : records) {
    std::string path = RH_TRY(PathOf(root, record.device_id));
    contents.push_back(RH_TRY(FormatRecord(record, "the allocation of " + record.device_id, 2)));
    files.push_back({std::move(path), contents.back()});
  }
  RH_TRY(MakeStateFolder(root, paths::Allocations(root)));
  return WriteAllAtomic(std::move(files), Sync::kDurable);
}

}  // namespace railhead
