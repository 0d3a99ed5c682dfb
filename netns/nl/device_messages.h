// rtnetlink messages for the settings of a device (device_state.h): link, XDP, qdiscs and DCB, bytes only.
// Internal to netns/nl.
// Source: net/core/rtnetlink.c (rtnl_fill_ifinfo, do_setlink, rtnl_xdp_fill), net/core/dev.c
// (__dev_change_flags, dev_xdp_attach), net/sched/sch_api.c, net/dcb/dcbnl.c.
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "netns/base/error.h"
#include "netns/nl/device_state.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead::nl {

// Without statistics and VFs.
Message GetDeviceMessage(int index);
// Link and XDP.
void ParseDevice(const Received& received, DeviceState& state);
Message SetLinkMessage(int index, const DeviceState& values);
// What is attached in the field's mode becomes the program behind `program`, a descriptor; -1: nothing.
Message SetXdpMessage(int index, const DeviceField& field, int program);

// The qdisc at root or ingress. Acknowledged, and echoed: otherwise the kernel says nothing about one that it
// has made by itself, and tells other qdiscs to those alone who listen for events (qdisc_get_notify).
Message GetQdiscMessage(int index, const DeviceField& field);
// "KIND/HANDLE/OPTIONS"; nullopt: one that the kernel has made, which has no handle. Classes and filters are
// not part of it.
std::optional<std::string> ParseQdisc(const Received& received);
// nullopt: `value` is none that ParseQdisc() makes.
std::optional<Message> AddQdiscMessage(int index, const DeviceField& field, std::string_view value);
Message DeleteQdiscMessage(int index, const DeviceField& field);

void ParseDcbSettings(const Received& received, DeviceState& state);
// All but the list of applications.
Message SetDcbMessage(const std::string& netdev, const DeviceState& values);
// Adds or removes one element of "dcb.applications"; nullopt: it is none.
std::optional<Message> ChangeDcbApplicationMessage(const std::string& netdev, std::string_view element,
                                                   bool add);
// The kernel acknowledges a message of which the driver has refused something, and says so in the answer.
std::optional<Error> ParseDcbAnswer(const Received& received);

}  // namespace railhead::nl
