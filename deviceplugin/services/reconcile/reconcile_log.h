// ReconcileLog: logs the reports of reconcile passes. A failure that stays the same is a warning only once.
// Ownership: borrows the log. Threads: one.
#pragma once

#include <set>
#include <string>

#include "deviceplugin/services/reconcile/reconcile_report.h"
#include "deviceplugin/support/log/log.h"

namespace railhead::reconcile {

class ReconcileLog {
 public:
  explicit ReconcileLog(Log* log) : log_(log) {}
  void Write(const ReconcileReport& report);

 private:
  void LogAddressEvent(const ipam::AddressEvent& event);
  void LogConflictSource(const ConflictSource& source);

  Log* log_;
  std::set<std::string> known_failures_;
};

}  // namespace railhead::reconcile
