// A kubeconfig file: YAML or JSON that another program or a person has written.
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  static const railhead::Root root(railhead::fuzz::ScratchDirectory());
  Require(railhead::MakeDirectories(root.Path("/etc")).has_value(), "a directory can be made");
  Require(
      railhead::WriteInPlace(root.Path("/etc/kubeconfig"), railhead::fuzz::TextOf(data, size)).has_value(),
      "a file can be written");
  railhead::KubeConfig config;
  config.kubeconfig = "/etc/kubeconfig";
  const auto access = railhead::FindKubeAccess(root, config, {});
  if (!access) return 0;
  Require(!access->endpoint.host.empty() && !access->endpoint.port.empty(), "a server has host and port");
  for (const auto* file : {&access->tls.authorities.file, &access->tls.certificate.file,
                           &access->tls.key.file, &access->token_file}) {
    Require(file->empty() || file->starts_with(root.Path("/")), "files are taken below the root");
  }
  return 0;
}
