// JournalEntry as text (internal to state and its tests).
#pragma once

#include <string>

#include "cni/state/journal.h"

namespace railhead {

std::string FormatJournalEntry(const JournalEntry& entry);
Result<JournalEntry> ParseJournalEntry(const std::string& text, const std::string& what);

}  // namespace railhead
