#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/print.h"

namespace railhead::railctl {
namespace {

constexpr const char* kFooter =
    "Exit status: 0 done; 1 it failed, or a check found a problem; 2 wrong command line; "
    "3 a configuration is missing or invalid; 4 vfs plan, migrate: changes or decisions are needed; "
    "5 preflight: not all could be checked.";

}  // namespace

void AddCommands(CLI::App* app, const Root& root, int* status) {
  AddCompletionCommand(app, status);
  AddConfigCommand(app, root, status);
  AddDescribeCommand(app, root, status);
  AddDevicesCommand(app, root, status);
  AddDoctorCommand(app, root, status);
  AddDrainCommands(app, root, status);
  AddExplainCommand(app, status);
  AddNcclCommand(app, root, status);
  AddHealthCommand(app, root, status);
  AddInstallCommand(app, root, status);
  AddIpamCommand(app, root, status);
  AddJournalCommand(app, root, status);
  AddLabelsCommand(app, root, status);
  AddLldpCommand(app, root, status);
  AddMigrateCommand(app, root, status);
  AddPreflightCommand(app, root, status);
  AddRdmaTestCommand(app, root, status);
  AddReachabilityCommand(app, root, status);
  AddStatusCommand(app, root, status);
  AddTopologyCommand(app, root, status);
  AddVfsCommand(app, root, status);
  AddWhyCommand(app, root, status);
}

int RunRailctl(int argc, char** argv) {
  const EscapedOutput output;
  const char* prefix = std::getenv("RAILHEAD_ROOT");
  const Root root(prefix != nullptr ? prefix : "");
  int status = kDone;
  CLI::App app("railctl: what Railhead does on this node");
  app.set_version_flag("--version", std::string("railctl ") + RAILHEAD_VERSION);
  app.set_help_all_flag("--help-all", "Print the help of all commands and exit");
  app.require_subcommand(1);
  app.footer(kFooter);
  AddCommands(&app, root, &status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  return status;
}

int Complain(const Error& error, int status) {
  (void)std::fprintf(stderr, "railctl: %s\n", OneLine(error.message).c_str());
  if (!error.hint.empty()) (void)std::fprintf(stderr, "  %s\n", OneLine(error.hint).c_str());
  return status;
}

namespace {

struct Word {
  std::string text;
  std::string help;
};

// A command by its path, "railctl ipam import", and what can follow it.
struct Place {
  std::string path;
  std::vector<Word> commands;
  std::vector<Word> options;
};

// Up to the first line's end: what fits beside the word.
std::string Brief(const std::string& help) {
  return help.substr(0, help.find('\n'));
}

void Walk(const CLI::App& app, const std::string& path, std::vector<Place>& places) {
  Place place{path, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames())
      place.options.push_back({"--" + name, Brief(option->get_description())});
  }
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : commands)
    place.commands.push_back({command->get_name(), Brief(command->get_description())});
  places.push_back(std::move(place));
  for (const CLI::App* command : commands) Walk(*command, path + " " + command->get_name(), places);
}

// For single quotes of a shell.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

// fish has \' inside of single quotes.
std::string FishQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string Texts(const std::vector<Word>& words) {
  std::string texts;
  for (const Word& word : words) texts += (texts.empty() ? "" : " ") + word.text;
  return texts;
}

// The words before the one at the cursor that are commands make the path; of what follows it the
// script knows the commands and the options, and leaves the rest to the shell: files.
std::string Bash(const std::vector<Place>& places, const std::string& name) {
  std::string cases;
  for (const Place& place : places) {
    cases += "        " + Quoted(place.path) + ") commands=" + Quoted(Texts(place.commands)) +
             " options=" + Quoted(Texts(place.options)) + " ;;\n";
  }
  return "# bash completion of " + name + ", made by `" + name + " completion bash`\n_" + name + R"(() {
    local current=${COMP_WORDS[COMP_CWORD]} path=)" +
         name + R"( word commands='' options=''
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        __)" +
         name + R"(_words "$path $word" && path+=" $word"
    done
    __)" +
         name + R"(_words "$path"
    case $current in
        -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current") ;;
    esac
}
__)" + name +
         R"(_words() {
    case $1 in
)" + cases +
         R"(        *) return 1 ;;
    esac
}
complete -o default -F _)" +
         name + " " + name + "\n";
}

std::string ZshWords(const std::vector<Word>& words) {
  std::string list;
  for (const Word& word : words) {
    // A colon ends the word.
    list += "\n            " + Quoted(word.text + ":" + word.help);
  }
  return list;
}

std::string Zsh(const std::vector<Place>& places, const std::string& name) {
  std::string cases;
  for (const Place& place : places) {
    cases += "        " + Quoted(place.path) + ")\n            commands=(" + ZshWords(place.commands) +
             ")\n            options=(" + ZshWords(place.options) + ") ;;\n";
  }
  return "#compdef " + name + "\n# made by `" + name + " completion zsh`\n__" + name + R"(_words() {
    case $1 in
)" + cases +
         R"(        *) return 1 ;;
    esac
}
_)" + name +
         R"(() {
    local path_=)" +
         name + R"( word
    local -a commands options
    for word in "${(@)words[2,CURRENT-1]}"; do
        __)" +
         name + R"(_words "$path_ $word" && path_+=" $word"
    done
    __)" +
         name + R"(_words "$path_"
    if [[ $words[CURRENT] == -* ]]; then
        _describe option options
    elif (( $#commands )); then
        _describe command commands
    else
        _files
    fi
}
_)" + name +
         " \"$@\"\n";
}

std::string Fish(const std::vector<Place>& places, const std::string& name) {
  std::string paths;
  std::string rules;
  const std::string complete = "complete -c " + name + " -n \"__" + name + "_at ";
  for (const Place& place : places) {
    const std::string path = FishQuoted(place.path);
    paths.append(" ").append(path);
    std::string at = complete;
    at.append(path).append("\"");
    for (const Word& word : place.commands)
      rules += at + " -f -a " + FishQuoted(word.text) + " -d " + FishQuoted(word.help) + "\n";
    for (const Word& word : place.options)
      rules += at + " -l " + FishQuoted(word.text.substr(2)) + " -d " + FishQuoted(word.help) + "\n";
  }
  return "# fish completion of " + name + ", made by `" + name + " completion fish`\nfunction __" + name +
         R"(_at
    set -l path )" +
         name + R"(
    for word in (commandline -opc)[2..]
        contains -- "$path $word")" +
         paths + R"(; and set path "$path $word"
    end
    test "$path" = "$argv[1]"
end
)" + rules;
}

}  // namespace

std::string CompletionScript(const CLI::App& app, const std::string& name, Shell shell) {
  std::vector<Place> places;
  Walk(app, name, places);
  switch (shell) {
    case Shell::kBash:
      return Bash(places, name);
    case Shell::kZsh:
      return Zsh(places, name);
    case Shell::kFish:
      break;
  }
  return Fish(places, name);
}

// railctl completion: scripts by which shells complete railctl's command line.

void AddCompletionCommand(CLI::App* app, int* status) {
  CLI::App* command = app->add_subcommand("completion", "print a script by which a shell completes railctl");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([app, status, shell] {
    Shell kind = Shell::kBash;
    if (*shell == "zsh") kind = Shell::kZsh;
    if (*shell == "fish") kind = Shell::kFish;
    const std::string script = CompletionScript(*app, "railctl", kind);
    *status = std::fputs(script.c_str(), stdout) < 0 ? kFailed : kDone;
  });
}

}  // namespace railhead::railctl
