// OtherInstances: other servers of the same resource, which come and go: an older or a newer railheadd beside
// this one, as during an update.
//
// If two plugins have one name, kubelet calls the one that registered last. It does not close the other's
// stream then, and still uses its lists. When the stream of either ends, kubelet (Kubernetes 1.36,
// plugin/v1beta1/handler.go) takes it for the end of the one that registered last. So an open stream does not
// mean that kubelet calls this server: a server that has seen another one end must register again. On a busy
// machine another server may come and go between two updates. The events of its socket show that.
//
// Ownership: none; it reads the directory. Threads: not thread-safe. Errors: a directory that cannot be read
// has no servers.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace railhead::kubelet {

struct OtherServer {
  std::string name;    // of its socket
  bool newer = false;  // made after ours
};

// Whether this is the socket of a server of the same resource in another process.
bool IsOther(const std::string& name, const std::string& own_name);
// The servers that serve now. SocketName() made `own_name`.
std::vector<OtherServer> OtherServers(const std::string& directory, const std::string& own_name);

class OtherInstances {
 public:
  struct Changes {
    std::optional<std::string> newer;  // one that is there
    bool newer_left = false;           // since the last update
    bool older_left = false;
  };

  // `passed`: sockets that came and went since the last update.
  Changes Update(const std::string& directory, const std::string& own_name,
                 std::span<const std::string> passed);
  // Whether another server existed at the last update. A killed one causes no event.
  [[nodiscard]] bool any() const { return !newer_.empty() || !older_.empty(); }

 private:
  std::set<std::string> newer_;
  std::set<std::string> older_;
  std::set<std::string> known_;  // at any update
};

}  // namespace railhead::kubelet
