#include "deviceplugin/services/kubelet/dial.h"

#include <grpc/grpc.h>

namespace railhead {

std::shared_ptr<grpc::Channel> DialUnix(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  // Go's server refuses the encoded socket path that newer gRPC puts there.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  // Without a shared pool: a new channel begins without the old one's waiting time.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace railhead
