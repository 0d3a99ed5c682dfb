// ResourceWatch: all objects of one kind of resource, by a list, and then by a watch of what changes.
//
// The first list takes whatever state the API server holds in memory (resourceVersion 0), so it costs etcd
// nothing. A later list takes the last known state or a newer one, so that time never runs backwards. A list
// is read object by object and never held. A watch goes on from the last event or bookmark. The server ends
// it after some minutes, and the next call opens another one. If the server does not have the state that the
// watch goes on from (410), or sends anything but events, the next call lists anew.
// Source: Kubernetes, "API concepts", efficient detection of changes and resource versions; client-go's
// tools/cache/reflector.go.
//
// Threads: one. Errors: those of KubeApi, and kMalformed. What the objects were before an error still counts,
// and may be old. The caller waits before the next call: for a longer time in a larger cluster, before the
// first one, too.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "deviceplugin/support/http/http_stream.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead {

// Who knows the objects.
class WatchedObjects {
 public:
  WatchedObjects() = default;
  WatchedObjects(const WatchedObjects&) = delete;
  WatchedObjects& operator=(const WatchedObjects&) = delete;
  virtual ~WatchedObjects() = default;

  // A list begins. If it ends, only what was set since its begin is there. If another one begins, it did not.
  virtual void BeginList() = 0;
  virtual void EndList() = 0;
  // An object as it is now, also one that was there before.
  virtual void Set(const std::string& name, JsonReader object) = 0;
  virtual void Remove(const std::string& name) = 0;
};

class ResourceWatch {
 public:
  // `path` of the resource: "/apis/GROUP/VERSION/RESOURCES".
  ResourceWatch(const KubeAccess& access, std::chrono::milliseconds timeout, std::string path,
                KubeNeeds needs = {});

  // Gives `objects` what there is, and waits for `wait` at most if there is nothing.
  Result<void> Take(std::chrono::milliseconds wait, WatchedObjects& objects);
  // false: the next call lists.
  [[nodiscard]] bool listed() const { return listed_; }

 private:
  using Clock = std::chrono::steady_clock;

  Result<void> List(WatchedObjects& objects);
  Result<void> Open();
  // What has come of the watch; ends with the watch, or when nothing comes until `until`.
  Result<void> TakeEvents(http::Deadline until, WatchedObjects& objects);
  Result<void> TakeLine(const std::string& line, WatchedObjects& objects);
  // The objects have to be listed anew.
  void Forget();

  KubeApi api_;
  const std::chrono::milliseconds timeout_;
  const std::string path_;
  const std::chrono::seconds watch_time_;
  std::string version_ = "0";  // of the last object
  bool listed_ = false;
  std::optional<http::HttpStream> stream_;  // the watch
  Clock::time_point opened_;
  std::string line_;  // that has not come to its end
};

}  // namespace railhead
