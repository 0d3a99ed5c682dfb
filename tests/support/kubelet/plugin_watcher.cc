#include "tests/support/kubelet/plugin_watcher.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "deviceplugin/support/plugin_registration/proto/pluginregistration_v1.grpc.pb.h"
#include "netns/base/files.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr milliseconds kWatchLook{20};
constexpr milliseconds kLongestPause{1000};  // kubelet's grows to minutes
constexpr seconds kInfoLimit{1};
constexpr seconds kNotifyLimit{5};

std::unique_ptr<pluginregistration::Registration::Stub> Dial(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return pluginregistration::Registration::NewStub(
      grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments));
}

void Limit(grpc::ClientContext* context, seconds limit) {
  context->set_deadline(std::chrono::system_clock::now() + limit);
}

bool Notify(pluginregistration::Registration::Stub* stub, const std::string& error) {
  pluginregistration::RegistrationStatus status;
  pluginregistration::RegistrationStatusResponse response;
  status.set_plugin_registered(error.empty());
  status.set_error(error);
  grpc::ClientContext context;
  Limit(&context, kNotifyLimit);
  return stub->NotifyRegistrationStatus(&context, status, &response).ok();
}

}  // namespace

PluginWatcher::PluginWatcher(std::string directory, PluginHandler handler)
    : directory_(std::move(directory)), handler_(std::move(handler)) {
  thread_ = std::thread([this] {
    while (!stopping_) {
      Look();
      std::this_thread::sleep_for(kWatchLook);
    }
  });
}

void PluginWatcher::Stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  for (auto& [path, plugin] : plugins_) {
    if (plugin->thread.joinable()) plugin->thread.join();
  }
  plugins_.clear();
}

// As in reconciler.go: first the sockets that have gone, then the new ones.
void PluginWatcher::Look() {
  const auto sockets = Sockets();
  for (auto at = plugins_.begin(); at != plugins_.end();) {
    Plugin& plugin = *at->second;
    const auto found = sockets.find(at->first);
    if (plugin.busy || (found != sockets.end() && found->second == plugin.inode)) {
      ++at;
      continue;
    }
    if (plugin.thread.joinable()) plugin.thread.join();
    if (!plugin.name.empty()) handler_.disconnect(plugin.name);
    at = plugins_.erase(at);
  }
  for (const auto& [path, inode] : sockets) {
    auto& plugin = plugins_[path];
    if (!plugin) plugin = std::make_unique<Plugin>(inode);
    if (stopping_ || plugin->busy || !plugin->name.empty() || Clock::now() < plugin->next_attempt) continue;
    if (plugin->thread.joinable()) plugin->thread.join();
    plugin->busy = true;
    plugin->thread = std::thread([this, path = path, plugin = plugin.get()] {
      Try(path, plugin);
      plugin->busy = false;
    });
  }
}

std::map<std::string, ino_t> PluginWatcher::Sockets() const {
  std::map<std::string, ino_t> sockets;
  const auto names = ListDirectory(directory_).value().value_or(std::vector<std::string>{});
  for (const std::string& name : names) {
    struct stat status {};
    const std::string path = directory_ + "/" + name;
    if (name.rfind('.', 0) != 0 && ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode))
      sockets[path] = status.st_ino;
  }
  return sockets;
}

// As in operation_generator.go, GenerateRegisterPluginFunc.
void PluginWatcher::Try(const std::string& path, Plugin* plugin) {
  plugin->next_attempt = Clock::now() + plugin->pause;
  plugin->pause = std::min(plugin->pause * 2, kLongestPause);
  const auto stub = Dial(path);
  pluginregistration::PluginInfo info;
  grpc::ClientContext context;
  Limit(&context, kInfoLimit);
  if (!stub->GetInfo(&context, {}, &info).ok()) return;
  const auto& versions = info.supported_versions();
  const auto version = std::find_if(versions.begin(), versions.end(), [this](const std::string& one) {
    return handler_.versions.contains(one);
  });
  std::string error;
  if (info.type() != handler_.type) {
    error = "no handler registered for plugin type: " + info.type();
  } else if (version == versions.end()) {
    error = "none of the plugin's versions is supported";
  } else {
    error = handler_.connect({info.name(), info.endpoint().empty() ? path : info.endpoint(), *version});
  }
  const bool notified = Notify(stub.get(), error);
  if (!error.empty()) return;
  if (notified) {
    plugin->name = info.name();
  } else {
    handler_.disconnect(info.name());
  }
}

}  // namespace railhead::testing
