#include "cni/protocol/cni_args.h"

namespace railhead {
namespace {

std::string Argument(const CniArgs& args, const char* name) {
  const auto found = args.find(name);
  return found == args.end() ? std::string() : found->second;
}

}  // namespace

std::string PodName(const CniArgs& args) {
  const std::string name = Argument(args, "K8S_POD_NAME");
  return name.empty() ? name : PodNamespace(args) + "/" + name;
}

std::string PodNamespace(const CniArgs& args) {
  return Argument(args, "K8S_POD_NAMESPACE");
}

std::string PodUid(const CniArgs& args) {
  return Argument(args, "K8S_POD_UID");
}

}  // namespace railhead
