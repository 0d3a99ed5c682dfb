#include "netns/nl/vf_settings.h"

namespace railhead {

std::string InWords(const MacAddress& mac) {
  return mac.ToString();
}

std::string InWords(const VfVlan& vlan) {
  std::string text = std::to_string(vlan.id) + ", QoS " + std::to_string(vlan.qos);
  if (vlan.proto == kVlanProto8021ad) text += ", 802.1ad";
  if (vlan.proto != kVlanProto8021ad && vlan.proto != kVlanProto8021q)
    text += ", protocol " + std::to_string(vlan.proto);
  return text;
}

std::string InWords(bool on) {
  return on ? "on" : "off";
}

std::string InWords(VfLinkState state) {
  return std::string(WordOf(state));
}

std::string InWords(const VfRate& rate) {
  return std::to_string(rate.min) + " to " + std::to_string(rate.max) + " Mbit/s";
}

VfSettings InverseOf(const VfSettings& change, const VfSettings& before, const VfSettings& now) {
  VfSettings inverse;
  ForEachVfSetting([&](const char* /*key*/, auto setting) {
    if (change.*setting && now.*setting != before.*setting) inverse.*setting = before.*setting;
  });
  return inverse;
}

}  // namespace railhead
