// Text of pods, switches and other nodes in a form that is safe for a terminal.
//
// Control characters (C0 but tab and newline, DEL, C1) and marks that change the direction of text are
// written as \u001b. Bytes that are not UTF-8 are written as \x9b. The first is JSON's escape, too: a string
// in JSON keeps its value. EscapedOutput does this for stdout and stderr of the whole program, so no command
// can forget it. Threads: as stdio's.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace railhead::railctl {

// In pieces, as they are written: a character may be cut between two.
class PrintableText {
 public:
  // `colours`: ESC [ NUMBER m passes, which only colours the text after it.
  explicit PrintableText(bool colours) : colours_(colours) {}

  std::string Next(std::string_view piece);
  // The bytes of a last character that did not end.
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

// The two functions that look past EscapedOutput at the terminal itself.

// Clears the terminal behind stdout.
void ClearScreen();

// What a command that takes long is doing: a line on stderr, if that is a terminal.
void SayProgress(const std::string& text);

}  // namespace railhead::railctl
