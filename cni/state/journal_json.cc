#include <algorithm>

#include "cni/state/journal.h"
#include "cni/state/journal_shape.h"
#include "netns/json/record_io.h"

namespace railhead {
namespace {

std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Devices that no readable part names. (The lock file of a slot names the entry, too.)
void AddDevicesOf(const UnreadableEntry& file, RecoveredEntry* recovered) {
  for (const std::string& device : file.devices) {
    const bool known = std::ranges::any_of(recovered->entry.devices, [&](const AttachedDevice& one) {
      return one.device == device || one.slot == device;
    });
    if (!known && recovered->unreadable.insert(device).second)
      recovered->lost.push_back("name, MAC and settings of " + device + " before the pod");
  }
}

}  // namespace

std::string TextForm<DeviceState>::Write(const DeviceState& settings) {
  std::string text;
  for (const auto& [name, value] : settings.values) {
    if (!text.empty()) text += ' ';
    text.append(name).append("=").append(value);
  }
  return text;
}

Result<DeviceState> TextForm<DeviceState>::Read(std::string_view text) {
  DeviceState settings;
  if (text.ends_with(' ')) return Fail(ErrorCode::kInvalid, "ends with a space");
  while (!text.empty()) {
    const std::string_view setting = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), setting.size() + 1));
    const std::size_t end = setting.find('=');
    const std::string_view name = setting.substr(0, end);
    const std::string_view value = end == std::string_view::npos ? "" : setting.substr(end + 1);
    const DeviceField* field = FindDeviceField(name);
    const bool wrong =
        name.empty() || end == std::string_view::npos || (field != nullptr && !IsDeviceValue(*field, value));
    if (wrong || !settings.values.emplace(name, value).second)
      return Fail(ErrorCode::kInvalid,
                  "'" + std::string(setting) + "' is not a setting NAME=VALUE, or its name occurs twice");
  }
  return settings;
}

Result<std::string> FormatJournalEntry(const JournalEntry& entry) {
  return FormatRecord(entry, "the entry of " + entry.key.ToString(), 1);
}

Result<JournalEntry> ParseJournalEntry(const std::string& text, const std::string& what) {
  return ParseRecord<JournalEntry>(text, what);
}

RecoveredEntry RecoverJournalEntry(const std::string& text, const UnreadableEntry& file) {
  RecoveredEntry recovered;
  const auto document = JsonDocument::Parse(text, file.path);
  if (!document || !document->json().is_object()) {
    recovered.entry.key = file.key;
    recovered.lost.push_back("the whole entry: " + file.error.message);
    AddDevicesOf(file, &recovered);
    return recovered;
  }
  nlohmann::json head = document->json();
  const nlohmann::json devices = head.value("devices", nlohmann::json());
  head.erase("devices");
  const auto own = JsonDocument::Parse(Dump(head), file.path);
  JsonReader reader = own->Root();
  recovered.entry = ReadRecord<JournalEntry>(reader);
  recovered.entry.key = file.key;
  for (const Error& error : reader.errors()) recovered.lost.push_back(error.message);
  for (std::size_t i = 0; devices.is_array() && i < devices.size(); ++i) {
    auto device = ParseRecord<AttachedDevice>(Dump(devices[i]), "/devices/" + std::to_string(i));
    if (device) {
      recovered.entry.devices.push_back(*std::move(device));
    } else {
      recovered.lost.push_back(device.error().message);
    }
  }
  AddDevicesOf(file, &recovered);
  return recovered;
}

}  // namespace railhead
