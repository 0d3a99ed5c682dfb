// Completion of a command line in bash, zsh and fish, made from the commands themselves: what is added to
// railctl is completed without a word here.
// Threads: pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace railhead::railctl {

enum class Shell { kBash, kZsh, kFish };

// The script to source, or to put where the shell looks: for bash
// /usr/share/bash-completion/completions/NAME, for zsh _NAME in its fpath, for fish
// vendor_completions.d/NAME.fish.
std::string CompletionScript(const CLI::App& app, const std::string& name, Shell shell);

}  // namespace railhead::railctl
