#include "deviceplugin/tools/explain/markdown.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "netns/base/text.h"

namespace railhead::explain {
namespace {

constexpr std::string_view kBullet = "- ";
constexpr std::string_view kSecondLevel = "## ";

std::string Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(' ') + 1 - first));
}

// "" if the line is not a heading.
std::string HeadingIn(std::string_view line) {
  const std::size_t text = line.find_first_not_of('#');
  if (text == 0 || text == std::string_view::npos || line[text] != ' ') return {};
  return Trimmed(line.substr(text));
}

// "a \| b" is one cell.
std::vector<std::string> CellsIn(std::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cell += line[++i];
    } else if (line[i] == '|') {
      cells.push_back(Trimmed(cell));
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

bool IsRule(std::string_view line) {
  return line.starts_with("|--");
}

// A link may go on in the next line, so marks stay until the text is complete.
void AddLine(std::vector<std::string>& texts, std::string_view line, bool first) {
  if (first || texts.empty()) {
    texts.emplace_back(line);
  } else {
    texts.back() += " " + Trimmed(line);
  }
}

// "repair the cable (docs/operate/replace-a-nic.md)": a reader of a terminal cannot follow a link. A link
// within the page, or one that names what it leads to, needs no place.
std::string LinkText(const std::string& text, std::string_view target) {
  if (target.starts_with('#') || target.substr(target.find('#') + 1) == ToLower(text)) return text;
  constexpr std::string_view kUp = "../";
  if (!target.starts_with(kUp)) return text + " (" + std::string(target) + ")";
  return text + " (docs/" + std::string(target.substr(kUp.size())) + ")";
}

void MakePlain(std::vector<std::string>& texts) {
  std::ranges::transform(texts, texts.begin(), PlainText);
}

}  // namespace

std::vector<MarkdownRow> RowsOf(std::string_view page) {
  std::vector<MarkdownRow> rows;
  std::string section;
  bool in_table = false;  // behind its heading
  for (const std::string& line : Split(page, '\n')) {
    if (std::string heading = HeadingIn(line); !heading.empty()) section = std::move(heading);
    if (!line.starts_with('|')) {
      in_table = false;
    } else if (IsRule(line)) {
      in_table = true;
    } else if (in_table) {
      rows.push_back({section, CellsIn(line)});
    }
  }
  return rows;
}

std::vector<MarkdownSection> SectionsOf(std::string_view page) {
  std::vector<MarkdownSection> sections;
  bool after_break = true;
  bool in_bullet = false;
  bool in_table = false;
  for (const std::string& line : Split(page, '\n')) {
    if (line.starts_with(kSecondLevel)) sections.push_back({HeadingIn(line), {}, {}});
    const bool is_row = line.starts_with('|');
    if (is_row && in_table && !IsRule(line)) sections.back().bullets.push_back(Join(CellsIn(line), ": "));
    in_table = is_row && !sections.empty() && (in_table || IsRule(line));
    const bool is_bullet = line.starts_with(kBullet);
    const bool is_text = !line.empty() && !is_row && !line.starts_with('#') && !line.starts_with("    ") &&
                         !line.starts_with("```");
    if (sections.empty() || !is_text) {
      after_break = true;
      in_bullet = false;
      continue;
    }
    in_bullet = is_bullet || (in_bullet && !after_break);
    MarkdownSection& section = sections.back();
    if (in_bullet) {
      AddLine(section.bullets, is_bullet ? line.substr(kBullet.size()) : line, is_bullet);
    } else {
      AddLine(section.paragraphs, line, after_break);
    }
    after_break = false;
  }
  for (MarkdownSection& section : sections) {
    MakePlain(section.paragraphs);
    MakePlain(section.bullets);
  }
  return sections;
}

std::string PlainText(std::string_view markdown) {
  std::string text;
  for (std::size_t i = 0; i < markdown.size(); ++i) {
    const std::string_view rest = markdown.substr(i);
    const std::size_t end = rest.find("](");
    const std::size_t close = end == std::string_view::npos ? end : rest.find(')', end);
    if (rest[0] == '[' && close != std::string_view::npos && rest.find('[', 1) > end) {
      text += LinkText(PlainText(rest.substr(1, end - 1)), rest.substr(end + 2, close - end - 2));
      i += close;
    } else if (rest.starts_with("**")) {
      ++i;
    } else if (rest[0] != '`') {
      text += rest[0];
    }
  }
  return text;
}

std::vector<std::string> CodeIn(std::string_view markdown) {
  std::vector<std::string> code;
  const auto parts = Split(markdown, '`');
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2) code.push_back(parts[i]);
  return code;
}

}  // namespace railhead::explain
