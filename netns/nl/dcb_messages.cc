#include "netns/nl/dcb_messages.h"

#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>

#include "netns/nl/attributes.h"

namespace railhead::nl {
namespace {

static_assert(kPriorities == IEEE_8021QAZ_MAX_TCS);
static_assert(kTsaStrict == IEEE_8021QAZ_TSA_STRICT && kTsaEts == IEEE_8021QAZ_TSA_ETS);

constexpr int kDscpValues = 64;

DcbEts Ets(const ieee_ets& from) {
  DcbEts ets;
  std::copy(std::begin(from.tc_tx_bw), std::end(from.tc_tx_bw), ets.bandwidth.begin());
  std::copy(std::begin(from.tc_tsa), std::end(from.tc_tsa), ets.selection.begin());
  std::copy(std::begin(from.prio_tc), std::end(from.prio_tc), ets.traffic_classes.begin());
  return ets;
}

void StoreApplication(DcbState& state, BytesView payload) {
  const auto app = ReadStruct<dcb_app>(payload);
  if (!app || app->selector != IEEE_8021QAZ_APP_SEL_DSCP) return;
  if (app->protocol >= kDscpValues || app->priority >= kPriorities) return;
  state.dscp.push_back({app->protocol, app->priority});
}

void StoreIeee(DcbState& state, int type, BytesView payload) {
  switch (type) {
    case DCB_ATTR_IEEE_ETS:
      if (const auto ets = ReadStruct<ieee_ets>(payload)) state.ets = Ets(*ets);
      break;
    case DCB_ATTR_IEEE_PFC:
      if (const auto pfc = ReadStruct<ieee_pfc>(payload)) state.pfc = pfc->pfc_en;
      break;
    case DCB_ATTR_IEEE_APP_TABLE:
      ForEachAttribute(payload, [&](int item, BytesView app) {
        if (item == DCB_ATTR_IEEE_APP) StoreApplication(state, app);
      });
      break;
    default:
      break;
  }
}

}  // namespace

Message GetDcbMessage(const std::string& netdev) {
  Message message(RTM_GETDCB, 0);
  dcbmsg header{};
  header.dcb_family = AF_UNSPEC;
  header.cmd = DCB_CMD_IEEE_GET;
  message.Header(header);
  message.PutString(DCB_ATTR_IFNAME, netdev);
  return message;
}

std::optional<DcbState> ParseDcb(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<dcbmsg>(rest);
  if (received.type != RTM_GETDCB || !header || header->cmd != DCB_CMD_IEEE_GET) return std::nullopt;
  DcbState state;
  ForEachAttribute(rest, [&](int type, BytesView list) {
    if (type != DCB_ATTR_IEEE) return;
    ForEachAttribute(list, [&](int item, BytesView payload) { StoreIeee(state, item, payload); });
  });
  return state;
}

}  // namespace railhead::nl
