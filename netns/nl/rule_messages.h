// rtnetlink routing rules: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/fib_rules.h; net/core/fib_rules.c.
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <optional>

#include "netns/nl/message.h"
#include "netns/nl/route.h"

namespace railhead::nl {

Message AddRuleMessage(const Rule& rule);
Message DeleteRuleMessage(const Rule& rule);
Message DumpRulesMessage(int family);

// nullopt for rules that Rule cannot express: another action than "lookup", or
// a selector beside source prefix and outgoing interface (mark, destination, ...).
std::optional<Rule> ParseRule(const Received& received);

}  // namespace railhead::nl
