// JournalEntry as text (internal to state and its tests).
#pragma once

#include <string>

#include "cni/state/journal.h"

namespace railhead {

std::string FormatJournalEntry(const JournalEntry& entry);
Result<JournalEntry> ParseJournalEntry(const std::string& text, const std::string& what);

// What can still be read of an entry that ParseJournalEntry() refuses: each device by itself.
struct RecoveredEntry {
  JournalEntry entry;                // its readable devices only; key by the file's path
  std::set<std::string> unreadable;  // devices of which nothing but the address is known
  std::vector<std::string> lost;     // what cannot be restored, and why, for people
};
RecoveredEntry RecoverJournalEntry(const std::string& text, const UnreadableEntry& file);

}  // namespace railhead
