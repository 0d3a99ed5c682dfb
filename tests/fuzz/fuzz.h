// What the fuzzers share.
//
// A fuzzer is one translation unit with LLVMFuzzerTestOneInput. It feeds one reader and checks the properties
// of everything that the reader accepts. If a property does not hold, the program ends like a crash, so that
// libFuzzer keeps the input.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace railhead::fuzz {

inline void Require(bool holds, const char* what) {
  if (holds) return;
  (void)std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

inline std::string TextOf(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A directory in memory, or in TMPDIR if that is set, which is removed when the fuzzer ends. After a kill
// run.sh removes it. It uses only values, since objects with a destructor are destroyed before that.
inline std::string ScratchDirectory() {
  [[maybe_unused]] static const int registered = std::atexit([] {
    std::error_code error;
    std::filesystem::remove_all(ScratchDirectory(), error);
  });
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder == nullptr ? "/dev/shm" : folder) + "/railhead-fuzz-" +
         std::to_string(::getpid());
}

// Names that become parts of paths.
inline bool IsSafeName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace railhead::fuzz

// libFuzzer's entry point has no header of its own.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
