#include "deviceplugin/tools/railctl/health_text.h"

#include "deviceplugin/services/health/rules.h"

namespace railhead::railctl {

std::string TextOf(const std::vector<HealthReason>& reasons) {
  std::string text;
  for (const HealthReason& reason : reasons) {
    if (!text.empty()) text += "; ";
    text.append(NameOf(reason.rule)).append(": ").append(reason.text);
  }
  return text;
}

std::string WhoOf(const HealthRecord& record) {
  const std::string vfs =
      record.vfs == 0 ? "" : std::to_string(record.vfs) + (record.vfs == 1 ? " VF" : " VFs");
  if (vfs.empty()) return record.device;
  return record.itself ? record.device + " and " + vfs : vfs + " of " + record.device;
}

std::string WhatOf(const HealthRecord& record) {
  std::string text = TextOf(record.started);
  if (!record.ended.empty())
    text.append(text.empty() ? "" : "; ").append("over: ").append(TextOf(record.ended));
  return text;
}

}  // namespace railhead::railctl
