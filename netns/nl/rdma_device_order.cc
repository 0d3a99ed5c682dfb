#include "netns/nl/rdma_device_order.h"

#include <linux/netlink.h>

#include <algorithm>
#include <utility>

#include "netns/nl/message.h"
#include "netns/nl/netlink_rdma.h"
#include "netns/nl/rdma.h"
#include "netns/nl/socket.h"

namespace railhead {

Result<std::vector<std::string>> RdmaDeviceOrder() {
  constexpr const char* kWhat = "asking for the order of RDMA devices";
  nl::Socket socket = RH_TRY_WRAP(nl::Socket::Open(NETLINK_RDMA), kWhat);
  nl::Message message = nl::DumpRdmaDevicesMessage();
  auto devices = RH_TRY_WRAP(socket.Dump<RdmaDevice>(message, nl::ParseRdmaDevice), kWhat);
  std::ranges::sort(devices, [](const RdmaDevice& a, const RdmaDevice& b) { return a.index < b.index; });
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (RdmaDevice& device : devices) names.push_back(std::move(device.name));
  return names;
}

}  // namespace railhead
