#include "netns/sys/mac_at_bind.h"

namespace railhead {

bool TakesMacAtBind(std::string_view driver) {
  return driver == "igbvf" || driver == "ixgbevf";
}

}  // namespace railhead
