// railctl completion: scripts for bash, zsh and fish, made from the commands themselves. And the manual page.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"

namespace railhead::railctl {
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

std::vector<Place> PlacesOf(const CLI::App& app, const std::string& name) {
  std::vector<Place> places;
  const auto commands = help::AllCommands(app, name);
  for (const help::Command& command : commands) {
    Place& place = places.emplace_back(Place{command.path, {}, {}});
    for (const CLI::Option* option : command.app->get_options()) {
      for (const auto& long_name : option->get_lnames())
        place.options.push_back({"--" + long_name, option->get_description()});
    }
    for (const help::Command& other : commands) {
      if (other.app->get_parent() == command.app)
        place.commands.push_back({other.app->get_name(), help::Brief(*other.app)});
    }
  }
  return places;
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

// The commands before the cursor make the path. The script completes the commands and options that can
// follow this path. The shell completes other words, as names of files.
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

std::string CompletionScript(const CLI::App& app, const std::string& shell) {
  const std::vector<Place> places = PlacesOf(app, kProgram);
  if (shell == "zsh") return Zsh(places, kProgram);
  if (shell == "fish") return Fish(places, kProgram);
  return Bash(places, kProgram);
}

}  // namespace

void AddCompletionCommands(CLI::App* app, int* status) {
  CLI::App* command = app->add_subcommand("completion", "Print a script by which a shell completes railctl");
  help::Set(command, {.more = "The Debian package installs the scripts.",
                      .examples = {{"source <(railctl completion bash)", "for this shell"},
                                   {"railctl completion fish >~/.config/fish/completions/railctl.fish",
                                    "for each later shell"}}});
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([app, status, shell] {
    const std::string script = CompletionScript(*app, *shell);
    *status = std::fputs(script.c_str(), stdout) < 0 ? kFailed : kDone;
  });
  // For packages: no group, so --help and completions do not have it.
  CLI::App* page = app->add_subcommand("man-page", "Print the manual page railctl(8)")->group("");
  page->callback([app, status] {
    const std::string text = help::ManPage(*app, kProgram, RAILHEAD_VERSION);
    *status = std::fputs(text.c_str(), stdout) < 0 ? kFailed : kDone;
  });
}

}  // namespace railhead::railctl
