#include "netns/nl/devlink_messages.h"

#include <linux/devlink.h>
#include <linux/genetlink.h>

#include <cerrno>

#include "netns/nl/attributes.h"

namespace railhead::nl {
namespace {

constexpr const char* kBus = "pci";

// enum devlink_health_reporter_state of include/net/devlink.h, which is not in uapi.
constexpr std::uint8_t kStateError = 1;

Message Begin(std::uint16_t family, std::uint8_t command, std::uint8_t version) {
  Message message(family, 0);
  message.Header(genlmsghdr{command, version, 0});
  return message;
}

void ParseReporter(BytesView attributes, DevlinkNews* news) {
  ForEachAttribute(attributes, [&](int type, BytesView payload) {
    if (type == DEVLINK_ATTR_HEALTH_REPORTER_NAME) news->reporter = ReadString(payload);
    if (type == DEVLINK_ATTR_HEALTH_REPORTER_STATE) {
      news->failed = ReadStruct<std::uint8_t>(payload).value_or(0) == kStateError;
    }
  });
}

std::uint32_t ParseGroups(BytesView groups) {
  std::uint32_t events = 0;
  ForEachAttribute(groups, [&](int, BytesView group) {
    std::string name;
    std::uint32_t id = 0;
    ForEachAttribute(group, [&](int type, BytesView payload) {
      if (type == CTRL_ATTR_MCAST_GRP_NAME) name = ReadString(payload);
      if (type == CTRL_ATTR_MCAST_GRP_ID) Store(id, ReadStruct<std::uint32_t>(payload));
    });
    if (name == DEVLINK_GENL_MCGRP_CONFIG_NAME) events = id;
  });
  return events;
}

}  // namespace

Message GetDevlinkFamilyMessage() {
  Message message = Begin(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
  message.PutString(CTRL_ATTR_FAMILY_NAME, DEVLINK_GENL_NAME);
  return message;
}

Message GetHealthReporterMessage(std::uint16_t family, const std::string& address,
                                 const std::string& reporter) {
  Message message = Begin(family, DEVLINK_CMD_HEALTH_REPORTER_GET, DEVLINK_GENL_VERSION);
  message.PutString(DEVLINK_ATTR_BUS_NAME, kBus);
  message.PutString(DEVLINK_ATTR_DEV_NAME, address);
  message.PutString(DEVLINK_ATTR_HEALTH_REPORTER_NAME, reporter);
  return message;
}

std::optional<DevlinkFamily> ParseDevlinkFamily(const Received& received) {
  BytesView rest = received.payload;
  if (!TakeHeader<genlmsghdr>(rest)) return std::nullopt;
  DevlinkFamily family;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == CTRL_ATTR_FAMILY_ID) Store(family.id, ReadStruct<std::uint16_t>(payload));
    if (type == CTRL_ATTR_MCAST_GROUPS) family.events = ParseGroups(payload);
  });
  if (family.id == 0) return std::nullopt;
  return family;
}

Result<DevlinkFamily> FindDevlink(Socket& socket, const std::string& what) {
  Message message = GetDevlinkFamilyMessage();
  std::optional<DevlinkFamily> family;
  const auto got =
      socket.Get(message, [&](const Received& received) { family = ParseDevlinkFamily(received); });
  const bool absent = !got && got.error().sys_errno == ENOENT;
  if (!got && !absent) return Fail(Wrap(got.error(), what));
  if (absent || !family) return Fail(ErrorCode::kUnsupported, what + ": the kernel does not have devlink");
  return *family;
}

std::optional<DevlinkNews> ParseDevlinkNews(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<genlmsghdr>(rest);
  if (!header) return std::nullopt;
  DevlinkNews news;
  std::string bus;
  bool of_port = false;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == DEVLINK_ATTR_BUS_NAME) bus = ReadString(payload);
    if (type == DEVLINK_ATTR_DEV_NAME) news.address = ReadString(payload);
    if (type == DEVLINK_ATTR_PORT_INDEX) of_port = true;
    if (type == DEVLINK_ATTR_HEALTH_REPORTER) ParseReporter(payload, &news);
  });
  if (bus != kBus || news.address.empty()) return std::nullopt;
  news.instance = header->cmd == DEVLINK_CMD_NEW || header->cmd == DEVLINK_CMD_DEL;
  if (news.instance) return news;
  // The kernel answers a request with _GET, and reports a change with _RECOVER. A port has reporters of its
  // own, maybe of the same name.
  const bool of_reporter =
      header->cmd == DEVLINK_CMD_HEALTH_REPORTER_GET || header->cmd == DEVLINK_CMD_HEALTH_REPORTER_RECOVER;
  if (!of_reporter || of_port || news.reporter.empty()) return std::nullopt;
  return news;
}

Message GetDevlinkInfoMessage(std::uint16_t family, const std::string& address) {
  Message message = Begin(family, DEVLINK_CMD_INFO_GET, DEVLINK_GENL_VERSION);
  message.PutString(DEVLINK_ATTR_BUS_NAME, kBus);
  message.PutString(DEVLINK_ATTR_DEV_NAME, address);
  return message;
}

std::map<std::string, std::string> ParseRunningVersions(const Received& received) {
  std::map<std::string, std::string> versions;
  BytesView rest = received.payload;
  if (!TakeHeader<genlmsghdr>(rest)) return versions;
  ForEachAttribute(rest, [&](int type, BytesView version) {
    if (type != DEVLINK_ATTR_INFO_VERSION_RUNNING) return;
    std::string name;
    std::string value;
    ForEachAttribute(version, [&](int part, BytesView payload) {
      if (part == DEVLINK_ATTR_INFO_VERSION_NAME) name = ReadString(payload);
      if (part == DEVLINK_ATTR_INFO_VERSION_VALUE) value = ReadString(payload);
    });
    if (!name.empty()) versions[name] = value;
  });
  return versions;
}

}  // namespace railhead::nl
