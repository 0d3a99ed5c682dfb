#include "deviceplugin/support/help/help.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

namespace railhead::help {
namespace {

constexpr std::size_t kNameColumn = 30;  // of CLI11, where descriptions begin
constexpr const char* kInsideItem = "      ";

std::string Block(const std::string& text) {
  return text.empty() ? text : text + "\n\n";
}

std::string ExamplesText(const std::vector<Example>& examples) {
  if (examples.empty()) return {};
  std::string text = "Examples:";
  for (const Example& example : examples) {
    text.append("\n  ").append(example.command).append("\n").append(kInsideItem);
    text += Wrapped(example.what, kColumns - 6, kInsideItem);
  }
  return text;
}

std::string StatusLine(int status, std::string_view meaning) {
  return "\n  " + std::to_string(status) + "   " + Wrapped(meaning, kColumns - 6, kInsideItem);
}

std::string StatusesText(const std::vector<Status>& statuses) {
  std::map<int, std::string_view> meanings = {
      {kExitDone, "done"}, {kExitFailed, "it failed"}, {kExitUsage, "wrong command line"}};
  for (const Status& one : statuses) meanings[one.status] = one.meaning;
  std::string text = "Exit status:";
  for (const auto& [status, meaning] : meanings) text += StatusLine(status, meaning);
  return text;
}

class WrappingFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Item(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Item(command->get_display_name(true), Brief(*command));
  }
  std::string make_description(const CLI::App* app) const override {
    return Wrapped(Description(*app), kColumns) + "\n";
  }
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (mode != CLI::AppFormatMode::All) return Formatter::make_help(app, std::move(name), mode);
    std::string text;
    for (const Command& command : AllCommands(*app, name)) {
      if (!text.empty()) text += "\n";
      text += Formatter::make_help(command.app, command.path, CLI::AppFormatMode::Normal);
    }
    return text;
  }

 private:
  static std::string Item(const std::string& name, const std::string& description) {
    std::stringstream out;
    CLI::detail::format_help(out, name, Wrapped(description, kColumns - kNameColumn), kNameColumn);
    return out.str();
  }
};

void Add(const CLI::App& app, const std::string& path, std::vector<Command>* commands) {
  commands->push_back({path, &app});
  std::vector<std::string> groups;
  const auto below = app.get_subcommands(
      [](const CLI::App* command) { return !command->get_group().empty() && !command->get_name().empty(); });
  for (const CLI::App* command : below) {
    if (std::ranges::find(groups, command->get_group()) == groups.end())
      groups.push_back(command->get_group());
  }
  for (const std::string& group : groups) {
    for (const CLI::App* command : below) {
      if (command->get_group() == group) Add(*command, path + " " + command->get_name(), commands);
    }
  }
}

}  // namespace

std::string Wrapped(std::string_view text, std::size_t width, std::string_view indent) {
  std::string wrapped;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (used > 0 && used + 1 + word.size() > width) {
      wrapped.append("\n").append(indent);
      used = 0;
    }
    if (used > 0) wrapped += ' ';
    used += word.size() + (used > 0 ? 1 : 0);
    wrapped += word;
  }
  return wrapped;
}

std::string Brief(const CLI::App& command) {
  const std::string description = command.get_description();
  return description.substr(0, description.find('\n'));
}

std::string Description(const CLI::App& command) {
  std::string description = command.get_description();
  const std::size_t end = description.find('\n');
  return end == std::string::npos ? description : description.replace(end, 1, ". ");
}

void Set(CLI::App* command, const Texts& texts) {
  if (*texts.more != '\0') command->description(command->get_description() + "\n" + texts.more);
  const std::string columns = texts.columns.empty() ? "" : Wrapped("Columns: " + texts.columns, kColumns);
  command->footer(Block(ExamplesText(texts.examples)) + Block(columns) +
                  Block(Wrapped(texts.notes, kColumns)) + StatusesText(texts.statuses));
}

std::string AllStatuses() {
  std::string text = "Exit status:";
  for (const ExitMeaning& one : kExitMeanings) {
    std::string meaning(one.meaning);
    if (one.programs != "all") meaning.append(" (").append(one.programs).append(")");
    text += StatusLine(one.status, meaning);
  }
  return text;
}

std::shared_ptr<CLI::FormatterBase> MakeFormatter() {
  return std::make_shared<WrappingFormatter>();
}

std::vector<Command> AllCommands(const CLI::App& app, const std::string& name) {
  std::vector<Command> commands;
  Add(app, name, &commands);
  return commands;
}

}  // namespace railhead::help
