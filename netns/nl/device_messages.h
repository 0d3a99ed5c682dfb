// rtnetlink messages for the settings of a device (device_state.h): link, XDP, qdiscs and DCB, bytes only.
// Internal to netns/nl.
// Source: net/core/rtnetlink.c (rtnl_fill_ifinfo, do_setlink, rtnl_xdp_fill), net/core/dev.c
// (__dev_change_flags, dev_xdp_attach), net/sched/sch_api.c, net/dcb/dcbnl.c.
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "netns/base/result.h"
#include "netns/nl/device_state.h"
#include "netns/nl/message.h"

namespace railhead::nl {

// Without statistics and VFs.
Message GetDeviceMessage(int index);
// Link and XDP.
void ParseDevice(const Received& received, DeviceState& state);
Message SetLinkMessage(int index, const DeviceState& values);
// Replaces the program attached in the field's mode by `program`, a descriptor; -1: detaches it.
Message SetXdpMessage(int index, const DeviceField& field, int program);

// The qdisc at root or ingress. Acknowledged and echoed. Without the echo the kernel says nothing about a
// qdisc that it has made by itself. It reports other qdiscs only to listeners for events (qdisc_get_notify).
Message GetQdiscMessage(int index, const DeviceField& field);
// "KIND/HANDLE/OPTIONS", without classes and filters. nullopt: a qdisc that the kernel has made, which has no
// handle.
std::optional<std::string> ParseQdisc(const Received& received);
// nullopt: ParseQdisc() never makes such a `value`.
std::optional<Message> AddQdiscMessage(int index, const DeviceField& field, std::string_view value);
Message DeleteQdiscMessage(int index, const DeviceField& field);

void ParseDcbSettings(const Received& received, DeviceState& state);
// All but the list of applications.
Message SetDcbMessage(const std::string& netdev, const DeviceState& values);
// Adds or removes one element of "dcb.applications"; nullopt: `element` is malformed.
std::optional<Message> ChangeDcbApplicationMessage(const std::string& netdev, std::string_view element,
                                                   bool add);
// The kernel acknowledges a message of which the driver has refused something, and says so in the answer.
std::optional<Error> ParseDcbAnswer(const Received& received);

}  // namespace railhead::nl
