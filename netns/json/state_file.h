// A file of one record, in a folder of the state (netns/base/state_folder.h): where it is, who writes it and
// how long it says something.
//
//   inline constexpr StateFile<LldpReport> kLldpFile{.path = "/run/railhead/lldp.json", ...};   in a header
//   template struct railhead::StateFile<railhead::lldp::LldpReport>;    in one source, with record_io.h
//
// Threads: values; one writer. Errors: as ReadRootFile() and ParseRecord() have them; Write: with `what`
// before them, and kInvalid when the file would be larger than it may be.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

template <typename T>
concept HasTime = requires(const T& value) {
  value.time;
};

template <typename T>
struct StateFile {
  const char* path;
  const char* what;         // for errors of writing: "saving health"
  const char* writer = "";  // for who misses it: "railheadd writes it when it runs with health rules"
  // A record with an older time: its writer does not run.
  std::chrono::seconds life{};
  std::size_t max_size = kMaxFileSize;

  [[nodiscard]] std::string PathIn(const Root& root) const { return root.Path(path); }
  // nullopt: the file does not exist.
  [[nodiscard]] Result<std::optional<T>> Read(const Root& root) const;
  [[nodiscard]] Result<void> Write(const Root& root, const T& value) const;

  [[nodiscard]] Error Missing(const Root& root) const {
    const std::string who = writer;
    return {ErrorCode::kNotFound, "missing file " + PathIn(root), who + ": is it running?", 0};
  }
  // For records that have a time. (A template, so that records without a time compile.)
  template <typename Record = T>
  [[nodiscard]] bool IsOld(const Record& value, std::chrono::system_clock::time_point now) const {
    return now - value.time > life;
  }
};

}  // namespace railhead
