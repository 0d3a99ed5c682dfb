#include "deviceplugin/services/kubelet/dial_unix.h"

#include <grpc/grpc.h>

namespace railhead::kubelet {
namespace {

// gRPC's default is 4 MiB. kubelet's own clients take 16 MiB (DefaultPodResourcesMaxSize in
// pkg/kubelet/apis/podresources/constants.go): about 300,000 devices.
constexpr int kMostOfAnAnswer = 16 << 20;

}  // namespace

std::shared_ptr<grpc::Channel> DialUnix(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  // A Go server refuses the encoded socket path that newer gRPC puts there.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  // Without a shared pool, a new channel does not inherit the old one's waiting time.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMostOfAnAnswer);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace railhead::kubelet
