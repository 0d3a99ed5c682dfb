// A plugin that prints the call that it got, for the protocol's plugin_test.
#include <cstdio>
#include <new>

#include "cni/protocol/plugin.h"

namespace {

// As an undo step.
struct Farewell {
  ~Farewell() { (void)std::fputs("undone\n", stderr); }
};

class EchoPlugin final : public railhead::CniPlugin {
 public:
  railhead::Result<std::string> Add(const railhead::CniRequest& request) override {
    const Farewell undo;
    if (request.network == "huge") throw std::bad_alloc();
    return "ADD " + request.network + " " + request.container_id + " " + request.ifname + " " +
           request.netns + " " + request.cni_version + "\n";
  }
  railhead::Result<void> Del(const railhead::CniRequest&) override { return {}; }
  railhead::Result<void> Check(const railhead::CniRequest&) override {
    return railhead::Fail(railhead::ErrorCode::kConflict, "not as it should be", "look");
  }
  railhead::Result<void> Gc(const railhead::CniRequest& request,
                            const std::vector<railhead::ValidAttachment>& valid) override {
    std::string listed = "GC " + request.network + request.container_id + request.ifname;
    for (const auto& attachment : valid)
      listed.append(" ").append(attachment.container_id).append("/").append(attachment.ifname);
    return railhead::Fail(railhead::ErrorCode::kLimited, listed);
  }
  railhead::Result<void> Status(const railhead::CniRequest& request) override {
    if (request.network == "sound") return {};
    return railhead::Fail(railhead::ErrorCode::kUnavailable, "not now", "later");
  }
};

}  // namespace

int main(int argc, char** argv) {
  EchoPlugin plugin;
  return railhead::RunCniPlugin(plugin, {"echo-plugin", "tells what it was asked", "No more help.\n"}, argc,
                                argv);
}
