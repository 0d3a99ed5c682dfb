// What a terminal may be shown: text of pods, switches and other nodes, without its control characters.
//
// Control characters (C0 but tab and newline, DEL, C1) and marks that change the direction of text are
// written as \u001b, what is no UTF-8 as \x9b. The first is JSON's escape, too: strings of JSON stay what
// they were. EscapedOutput has all that stdio writes to stdout and stderr pass through here: no command can
// forget it. Threads: as stdio's.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace railhead::railctl {

// In pieces, as they are written: a character may be cut between two.
class PrintableText {
 public:
  // `colours`: ESC [ NUMBER m passes, which does no more than colour what follows.
  explicit PrintableText(bool colours) : colours_(colours) {}

  std::string Next(std::string_view piece);
  // What is left of a character that did not end.
  std::string Rest();

 private:
  const bool colours_;
  std::string held_;
};

// A whole text, in one line: newlines and tabs are escaped, too.
std::string OneLine(std::string_view text);

// While it lives, for stdout and stderr. Colours pass on a terminal.
class EscapedOutput {
 public:
  EscapedOutput();
  ~EscapedOutput();
  EscapedOutput(const EscapedOutput&) = delete;
  EscapedOutput& operator=(const EscapedOutput&) = delete;

 private:
  struct Stream;
  std::unique_ptr<Stream> out_;
  std::unique_ptr<Stream> err_;
};

}  // namespace railhead::railctl
