#include "tests/system/power/write_log.h"

#include <cstring>
#include <utility>

namespace railhead::testing {
namespace {

constexpr std::uint64_t kMagic = 0x6a736677736872ULL;
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kFlush = 1U << 0U;
constexpr std::uint64_t kFua = 1U << 1U;
constexpr std::uint64_t kDiscard = 1U << 2U;
constexpr std::uint64_t kMark = 1U << 3U;

constexpr std::size_t kSuperSize = 28;
constexpr std::size_t kEntrySize = 32;

std::uint64_t Little(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8U | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

Error Malformed(const std::string& what) {
  return {ErrorCode::kMalformed, "log of dm-log-writes: " + what, "", 0};
}

}  // namespace

Result<std::vector<LoggedWrite>> ParseWriteLog(const std::string& bytes) {
  if (bytes.size() < kSuperSize || Little(bytes, 0, 8) != kMagic) return Fail(Malformed("no super block"));
  if (Little(bytes, 8, 8) != kVersion) return Fail(Malformed("another version than 1"));
  const std::uint64_t count = Little(bytes, 16, 8);
  const std::uint64_t sector = Little(bytes, 24, 4);
  if (sector < kEntrySize) return Fail(Malformed("sectors of " + std::to_string(sector) + " bytes"));
  std::vector<LoggedWrite> writes;
  std::uint64_t at = sector;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (at + sector > bytes.size()) return Fail(Malformed("entry " + std::to_string(i) + " is cut off"));
    const std::uint64_t size = Little(bytes, at + 8, 8) * sector;
    const std::uint64_t flags = Little(bytes, at + 16, 8);
    const std::uint64_t data_length = Little(bytes, at + 24, 8);
    LoggedWrite write;
    write.offset = Little(bytes, at, 8) * sector;
    write.flush = (flags & kFlush) != 0;
    write.fua = (flags & kFua) != 0;
    if ((flags & kMark) != 0) {
      if (data_length > sector - kEntrySize) return Fail(Malformed("a mark longer than its sector"));
      write.mark = bytes.substr(at + kEntrySize, data_length);
      write.mark = write.mark.substr(0, write.mark.find('\0'));
    }
    at += sector;
    const bool has_data = (flags & (kMark | kDiscard)) == 0;
    if (has_data && at + size > bytes.size())
      return Fail(Malformed("the data of entry " + std::to_string(i) + " is cut off"));
    if (has_data) {
      write.data = bytes.substr(at, size);
      at += size;
    }
    writes.push_back(std::move(write));
  }
  return writes;
}

}  // namespace railhead::testing
