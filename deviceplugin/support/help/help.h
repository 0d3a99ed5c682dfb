// Help of a program: one description per command, from which --help, manual pages and completions come.
//
//   CLI::App app("railctl: what Railhead does on this node", "railctl");
//   app.formatter(help::MakeFormatter());                  // before its commands are added
//   CLI::App* drain = app.add_subcommand("drain", "take a rail, PF or VF out of use");
//   help::Set(drain, {.examples = {{"railctl drain rail0", "new pods do not get a VF of rail0"}},
//                     .statuses = {{kExitFailed, "the target is not drained"}}});
//
// The description of a CLI::App begins with the line that lists of commands have. Set() adds what follows the
// options. A line has at most 80 columns. Ownership: Set() writes into the command. Threads: pure, but for
// Set().
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/exit_status.h"

namespace railhead::help {

inline constexpr std::size_t kColumns = 80;

struct Example {
  const char* command;
  const char* what;
};

// What a status means for one command.
struct Status {
  int status;
  const char* meaning;
};

struct Texts {
  const char* more = "";  // sentences that follow the description's first line
  std::vector<Example> examples;
  std::string columns;  // of its table: "DEVICE, PF; with -o wide: UVERBS"
  const char* notes = "";
  // Besides "done", "failed" and "wrong command line", which every command has.
  std::vector<Status> statuses;
};

void Set(CLI::App* command, const Texts& texts);

// Of a whole program: kExitMeanings, with the programs of each.
std::string AllStatuses();

// Wraps at kColumns. With --help-all it prints the help of all commands, one after the other.
std::shared_ptr<CLI::FormatterBase> MakeFormatter();

// The first line of a command's description: what fits beside its name.
std::string Brief(const CLI::App& command);

// All of a command's description, in sentences.
std::string Description(const CLI::App& command);

// In lines of at most `width` characters, but for longer words. Every line after the first has `indent`
// before it.
std::string Wrapped(std::string_view text, std::size_t width, std::string_view indent = "");

// Commands with their paths, "railctl ipam list", in the order of --help. Hidden ones (of no group) are left
// out.
struct Command {
  std::string path;
  const CLI::App* app = nullptr;
};
std::vector<Command> AllCommands(const CLI::App& app, const std::string& name);

// The manual page NAME(8) in troff's man macros, with the texts of --help. `version` is the program's.
std::string ManPage(const CLI::App& app, const std::string& name, const std::string& version);

}  // namespace railhead::help
