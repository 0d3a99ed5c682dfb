// The exit statuses of all programs: railhead, railhead-ipam, railheadd and railctl. One status has one
// meaning.
//
// Help texts and docs/reference/programs.md have the meanings from here. A command of railctl may say more
// exactly what a status means for it (deviceplugin/support/help). Threads: constants.
#pragma once

#include <array>
#include <string_view>

namespace railhead {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadConfig = 3;
inline constexpr int kExitChangesNeeded = 4;
inline constexpr int kExitUndetermined = 5;

struct ExitMeaning {
  int status;
  std::string_view meaning;
  std::string_view programs;  // that end with it, beside their commands
};

inline constexpr std::array<ExitMeaning, 6> kExitMeanings{{
    {kExitDone, "done", "all"},
    {kExitFailed, "it failed, or a check found a problem; a CNI plugin has printed a CNI error", "all"},
    {kExitUsage, "wrong command line", "all"},
    {kExitBadConfig, "a configuration is missing or invalid", "railheadd, railctl"},
    {kExitChangesNeeded, "changes or decisions are needed", "railctl: config diff, migrate, vfs plan"},
    {kExitUndetermined, "not all could be checked, and nothing is bad", "railctl: preflight"},
}};

}  // namespace railhead
