#include "netns/nl/rule_messages.h"

#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "netns/nl/attributes.h"

namespace railhead::nl {
namespace {

Message RuleMessage(std::uint16_t type, std::uint16_t flags, const Rule& rule) {
  Message message(type, flags);
  fib_rule_hdr header{};
  header.family = static_cast<std::uint8_t>(rule.family);
  header.src_len = rule.from ? static_cast<std::uint8_t>(rule.from->length) : 0;
  header.table = static_cast<std::uint8_t>(rule.table < 256 ? rule.table : 0U);
  header.action = FR_ACT_TO_TBL;
  message.Header(header);
  if (rule.from && rule.from->length > 0) {
    const IpAddress network = rule.from->First();
    message.Put(FRA_SRC, {network.Data(), network.Size()});
  }
  if (!rule.iif.empty()) message.PutString(FRA_IIFNAME, rule.iif);
  if (!rule.oif.empty()) message.PutString(FRA_OIFNAME, rule.oif);
  message.PutU32(FRA_PRIORITY, rule.priority);
  if (rule.table >= 256) message.PutU32(FRA_TABLE, rule.table);
  return message;
}

// Whether an attribute is a selector or action that Rule has no field for. Known ones are listed, so that
// selectors of newer kernels count as foreign; the kernel reports a selector only when it is set.
bool IsForeign(int type, BytesView payload) {
  switch (type) {
    case FRA_SRC:
    case FRA_IIFNAME:
    case FRA_OIFNAME:
    case FRA_PRIORITY:
    case FRA_TABLE:
    case FRA_PROTOCOL:
    case FRA_PAD:
      return false;
    case FRA_SUPPRESS_PREFIXLEN:
    case FRA_SUPPRESS_IFGROUP:
      // Always reported; -1: not set.
      return ReadStruct<std::int32_t>(payload).value_or(-1) != -1;
    default:
      return true;
  }
}

}  // namespace

Message AddRuleMessage(const Rule& rule) {
  Message message = RuleMessage(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, rule);
  message.PutU8(FRA_PROTOCOL, RTPROT_STATIC);
  return message;
}

Message DeleteRuleMessage(const Rule& rule) {
  return RuleMessage(RTM_DELRULE, 0, rule);
}

Message DumpRulesMessage(int family) {
  Message message(RTM_GETRULE, 0);
  fib_rule_hdr header{};
  header.family = static_cast<std::uint8_t>(family);
  message.Header(header);
  return message;
}

std::optional<Rule> ParseRule(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<fib_rule_hdr>(rest);
  if (received.type != RTM_NEWRULE || !header || header->action != FR_ACT_TO_TBL || header->tos != 0 ||
      header->dst_len != 0 || (header->flags & FIB_RULE_INVERT) != 0) {
    return std::nullopt;
  }
  Rule rule;
  rule.family = header->family;
  rule.table = header->table;
  bool foreign = false;
  std::optional<IpAddress> source;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == FRA_SRC) source = ReadAddress(payload);
    if (type == FRA_IIFNAME) rule.iif = ReadString(payload);
    if (type == FRA_OIFNAME) rule.oif = ReadString(payload);
    if (type == FRA_PRIORITY) Store(rule.priority, ReadStruct<std::uint32_t>(payload));
    if (type == FRA_TABLE) Store(rule.table, ReadStruct<std::uint32_t>(payload));
    foreign = foreign || IsForeign(type, payload);
  });
  if (foreign || rule.table == RT_TABLE_UNSPEC) return std::nullopt;
  if (rule.family != AF_INET && rule.family != AF_INET6) return std::nullopt;
  if (header->src_len > 0) {
    if (!source || source->Family() != rule.family || header->src_len > source->Bits()) return std::nullopt;
    rule.from = IpPrefix{*source, header->src_len};
  }
  return rule;
}

}  // namespace railhead::nl
