// TakesMacAtBind: drivers of VFs that read their MAC from the PF only when they bind.
//
// Threads: pure function.
// Source: "Reload the VF driver to make this change effective" (igb_ndo_set_vf_mac, ixgbe_ndo_set_vf_mac).
#pragma once

#include <string_view>

namespace railhead {

// Whether a MAC that is set through the PF has to wait until this driver is bound again.
bool TakesMacAtBind(std::string_view driver);

}  // namespace railhead
