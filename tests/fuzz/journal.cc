// Journal entries, which a full disk or a bad block may have damaged.
#include "cni/state/journal.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  const auto entry = railhead::ParseJournalEntry(railhead::fuzz::TextOf(data, size), "entry");
  if (!entry) return 0;
  const std::string text = railhead::FormatJournalEntry(*entry).value();
  const auto again = railhead::ParseJournalEntry(text, "our own entry");
  Require(again.has_value(), "what we write of an accepted entry is accepted");
  Require(railhead::FormatJournalEntry(*again).value() == text, "writing it again changes nothing");
  return 0;
}
