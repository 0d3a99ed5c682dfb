// The parts of a Markdown page of docs/ that `railctl explain` quotes: rows of tables, and sections.
//
// It reads the Markdown of these pages only. There a paragraph, bullet or row ends before the next blank
// line, bullet or row. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace railhead::explain {

// One row of a table, without its heading.
struct MarkdownRow {
  std::string section;             // the heading above the table
  std::vector<std::string> cells;  // as Markdown
};

std::vector<MarkdownRow> RowsOf(std::string_view page);

// A section of the second level without its code blocks.
struct MarkdownSection {
  std::string heading;
  std::vector<std::string> paragraphs;  // as plain text
  std::vector<std::string> bullets;     // likewise; a row of a table is one: "CELL: CELL"
};

std::vector<MarkdownSection> SectionsOf(std::string_view page);

// Without the marks of links, code and bold text. A link that does not name its target gets it in brackets.
std::string PlainText(std::string_view markdown);

// The code spans of a cell: "`link`, `rdmaPort`" has two.
std::vector<std::string> CodeIn(std::string_view markdown);

}  // namespace railhead::explain
