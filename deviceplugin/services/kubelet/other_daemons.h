// Other servers of the same resource: an older or a newer railheadd beside this one, as during an
// update.
//
// Of two plugins with one name kubelet asks the one that registered last. It does not close the other's
// stream then, whose lists go on to count; and when the stream of either ends, kubelet (Kubernetes 1.36,
// plugin/v1beta1/handler.go) takes it for the end of whoever registered last. So an open stream does not
// tell that one is being asked: a server that has seen another one leave must register again. One may come
// and leave between two looks, as on a busy machine: of that its socket's events tell.
//
// Threads: not thread-safe.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace railhead {

struct OtherServer {
  std::string name;    // of its socket
  bool newer = false;  // made after ours
};

// Whether this is the socket of a server of the same resource in another process.
bool IsOther(const std::string& name, const std::string& own_name);
// Those that are being served now. `own_name` as SocketName() made it.
std::vector<OtherServer> OtherServers(const std::string& directory, const std::string& own_name);

class Siblings {
 public:
  struct Seen {
    std::optional<std::string> newer;  // one that is there
    bool newer_left = false;           // since the last look
    bool older_left = false;
  };

  // `passed`: sockets that came and went since the last look.
  Seen Look(const std::string& directory, const std::string& own_name, std::span<const std::string> passed);
  // Whether there was one at the last look. One that is killed leaves no event.
  [[nodiscard]] bool any() const { return !newer_.empty() || !older_.empty(); }

 private:
  std::set<std::string> newer_;
  std::set<std::string> older_;
  std::set<std::string> met_;  // at any look
};

}  // namespace railhead
