// RTM_NEWLINK messages as lines of text, attribute by attribute; see raw_state.h.
// Threads: pure functions. Total on any bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netns/nl/socket.h"

namespace railhead::crash {

struct RawLink {
  int index = 0;
  std::string name;
  std::vector<std::string> lines;  // "mtu=dc050000", "vf 0 vlan=...", "ipv4 13=1 19=1"
};

std::optional<RawLink> ParseRawLink(const nl::Received& received);

// "4=dc050000": an attribute that has no name here.
std::string Hex(int type, nl::BytesView payload);

}  // namespace railhead::crash
