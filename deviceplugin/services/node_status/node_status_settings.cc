#include "deviceplugin/services/node_status/node_status_settings.h"

#include "netns/json/record_io.h"

namespace railhead::node_status {

Result<NodeStatusSettings> ParseNodeStatusSettings(const std::string& text, const std::string& what,
                                                   std::size_t rails, std::vector<Error>* all) {
  return ParseSection<NodeStatusSettings>(
      text, what, "/nodeStatus", all,
      [&](const NodeStatusSettings& settings, const record::Complain& complain) {
        const auto below = settings.taint ? settings.taint->when_rails_below : std::nullopt;
        if (!below || static_cast<std::size_t>(*below) <= rails) return;
        complain(PointerOf("taint", "whenRailsBelow"),
                 "the fabric has only " + std::to_string(rails) + " rails",
                 "every node would have the taint for ever");
      });
}

}  // namespace railhead::node_status
