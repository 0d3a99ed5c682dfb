// The manual page of a program.
#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/support/help/help.h"

namespace railhead::help {
namespace {

// A line of text that troff takes as it is.
std::string Plain(std::string_view text) {
  std::string plain;
  if (text.starts_with('.') || text.starts_with('\'')) plain = "\\&";
  for (const char c : text) {
    if (c == '\\') {
      plain += "\\e";
    } else if (c == '-') {
      plain += "\\-";
    } else {
      plain += c;
    }
  }
  return plain;
}

// Text that troff fills, in lines of the source that people can read.
std::string Filled(std::string_view text) {
  std::istringstream lines(Wrapped(text, kColumns - 10));
  std::string filled;
  for (std::string line; std::getline(lines, line);) filled += Plain(line) + "\n";
  return filled;
}

std::string Item(const std::string& label, const std::string& text) {
  return ".TP\n.B " + Plain(label) + "\n" + Filled(text);
}

// "--size UINT" of an option, "ATTACHMENT" of what has no name.
std::string LabelOf(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true, false);
  std::string label = option.get_name(false, true);
  std::ranges::replace(label, ',', ' ');
  if (option.get_type_size() != 0 && !option.get_type_name().empty()) label += " " + option.get_type_name();
  return label;
}

std::string OptionsOf(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    std::string what = option->get_description();
    if (option->get_required()) what += " (required)";
    if (const std::string value = option->get_default_str(); !value.empty())
      what += " (default: " + value + ")";
    text += Item(LabelOf(*option), what);
  }
  return text;
}

// Of what Set() and AllStatuses() write: headings, items ("  LABEL   TEXT", and "      TEXT"), and
// paragraphs.
std::string FooterText(const std::string& footer) {
  std::istringstream lines(footer);
  std::string text;
  bool in_paragraph = false;
  for (std::string line; std::getline(lines, line);) {
    const bool goes_on = in_paragraph;
    in_paragraph = false;
    if (line.empty()) continue;
    if (line.starts_with("      ")) {
      text += Plain(line.substr(6)) + "\n";
    } else if (line.starts_with("  ") && !text.empty()) {
      const std::size_t gap = line.find("   ", 2);
      text += ".TP\n.B " + Plain(line.substr(2, gap == std::string::npos ? gap : gap - 2)) + "\n";
      if (gap != std::string::npos) text += Plain(line.substr(gap + 3)) + "\n";
    } else if (line.ends_with(':')) {
      text += ".PP\n.I " + Plain(line) + "\n";
    } else {
      text += (goes_on ? "" : ".PP\n") + Plain(line) + "\n";
      in_paragraph = true;
    }
  }
  return text;
}

std::string SectionOf(const Command& command) {
  std::string usage = command.path;
  for (const CLI::Option* option : command.app->get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true, false);
    usage += option->get_required() ? " " + name : " [" + name + "]";
  }
  return ".SS " + Plain(usage) + "\n" + Filled(Description(*command.app)) + OptionsOf(*command.app) +
         FooterText(command.app->get_footer());
}

std::string Upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

std::string ManPage(const CLI::App& app, const std::string& name, const std::string& version) {
  // "railctl: what Railhead does on this node"
  std::string brief = Brief(app);
  if (brief.starts_with(name + ": ")) brief.erase(0, name.size() + 2);
  const auto commands = AllCommands(app, name);
  std::string page = ".TH " + Upper(name) + " 8 \"\" \"" + name + " " + version + "\" Railhead\n.SH NAME\n" +
                     Plain(name) + " \\- " + Plain(brief) + "\n.SH SYNOPSIS\n.B " + Plain(name) +
                     (commands.size() > 1 ? "\n.I COMMAND\n" : "\n") + "[OPTIONS]\n.SH OPTIONS\n" +
                     OptionsOf(app);
  if (commands.size() > 1) page += ".SH COMMANDS\n";
  for (const Command& command : commands) {
    // What only holds others has nothing to say of itself.
    if (command.app != &app && command.app->get_require_subcommand_min() == 0) page += SectionOf(command);
  }
  return page + ".SH NOTES\n" + FooterText(app.get_footer());
}

}  // namespace railhead::help
