// Rows and sections of the pages that railctl explain quotes.
#include "deviceplugin/tools/explain/markdown.h"

#include <gtest/gtest.h>

namespace railhead::testing {
namespace {

using Texts = std::vector<std::string>;

TEST(MarkdownTest, RowsHaveTheHeadingAboveTheirTable) {
  const auto rows = explain::RowsOf(
      "# Page\n\n| a | b |\n|---|---|\n| 1 | `x\\|y` |\n| 2 | |\n\n### Next\n\n| c |\n|---|\n| 3 |\n");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].section, "Page");
  EXPECT_EQ(rows[0].cells, (Texts{"1", "`x|y`"}));
  EXPECT_EQ(rows[1].cells, (Texts{"2", ""}));
  EXPECT_EQ(rows[2].section, "Next");
  EXPECT_EQ(rows[2].cells, (Texts{"3"}));
}

TEST(MarkdownTest, SectionsHaveParagraphsBulletsAndRowsWithoutCode) {
  const auto sections = explain::SectionsOf(
      "# Page\n\nBefore.\n\n## First\n\nOne\ntwo.\n\nThree.\n\n    code\n\n- Check: a [link\n  that goes "
      "on](other.md#x).\n- Fix: b.\n\n| t | u |\n|---|---|\n| r | s |\n\nAfter.\n\n## Second\n");
  ASSERT_EQ(sections.size(), 2U);
  EXPECT_EQ(sections[0].heading, "First");
  EXPECT_EQ(sections[0].paragraphs, (Texts{"One two.", "Three.", "After."}));
  EXPECT_EQ(sections[0].bullets, (Texts{"Check: a link that goes on (other.md#x).", "Fix: b.", "r: s"}));
  EXPECT_EQ(sections[1].heading, "Second");
  EXPECT_TRUE(sections[1].paragraphs.empty());
}

TEST(MarkdownTest, PlainTextHasNoMarks) {
  EXPECT_EQ(explain::PlainText("**off** by `default` ([below](#x), [a](b.md))"),
            "off by default (below, a (b.md))");
  EXPECT_EQ(explain::PlainText("`railctl x [-o json]` and [page](p.md)"),
            "railctl x [-o json] and page (p.md)");
  EXPECT_EQ(explain::PlainText("[page](../operate/p.md#x)"), "page (docs/operate/p.md#x)");
  EXPECT_EQ(explain::PlainText("[RailheadDown](runbooks.md#railheaddown)"), "RailheadDown");
  EXPECT_EQ(explain::PlainText("pools[] stays"), "pools[] stays");
}

TEST(MarkdownTest, CodeOfACell) {
  EXPECT_EQ(explain::CodeIn("`link`, `rdmaPort` and more"), (Texts{"link", "rdmaPort"}));
  EXPECT_TRUE(explain::CodeIn("none").empty());
}

}  // namespace
}  // namespace railhead::testing
