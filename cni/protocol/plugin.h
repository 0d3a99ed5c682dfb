// The CNI protocol of one plugin process: environment and standard input in, one
// JSON object on standard output and an exit status out.
//
//   class Ipam : public CniPlugin { ... };
//   int main(int argc, char** argv) { Ipam ipam; return RunCniPlugin(ipam, {...}, argc, argv); }
//
// RunCniPlugin checks the input against the specification before the plugin gets it. It checks command,
// container id, interface name, network name and version, and the size and form of the configuration. For GC
// it also checks the list of valid attachments. Results are in the version that the configuration names.
//
// It reads standard input to its end (or past its limit) before anything else. If a runtime keeps the input
// open, the plugin waits, without locks or changes, until the runtime's timeout ends it.
//
// Exit status: 0 success; 1 a CNI error was printed on standard output;
// 2 wrong command line. Threads: single-threaded.
// Source: containernetworking/cni SPEC.md (1.1.0), pkg/skel.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead {

// One call. For DEL `netns` may be anything, and `ifname` any text that is not empty. GC and STATUS are about
// a network, not a container: container_id, netns, ifname and args are empty.
struct CniRequest {
  std::string command;  // ADD, DEL, CHECK, GC, STATUS
  std::string container_id;
  std::string netns;
  std::string ifname;
  std::map<std::string, std::string> args;  // CNI_ARGS
  std::vector<std::string> path;            // CNI_PATH
  std::string network;                      // "name" of the configuration
  std::string cni_version;                  // of the result
  std::string config;                       // standard input, unchanged
  bool netns_override = false;              // CNI_NETNS_OVERRIDE: the plugin's own namespace is allowed
};

// What CNI_IFNAME may be: 1 to 15 ASCII characters, no '/', ':', '%', blank or control character, not ".",
// "..", "all" or "default".
bool IsInterfaceName(std::string_view text);

// An attachment that GC must not release.
struct ValidAttachment {
  std::string container_id;
  std::string ifname;

  bool operator==(const ValidAttachment&) const = default;
};

class CniPlugin {
 public:
  CniPlugin() = default;
  CniPlugin(const CniPlugin&) = delete;
  CniPlugin& operator=(const CniPlugin&) = delete;
  virtual ~CniPlugin() = default;

  // The JSON result to print.
  virtual Result<std::string> Add(const CniRequest& request) = 0;
  virtual Result<void> Del(const CniRequest& request) = 0;
  virtual Result<void> Check(const CniRequest& request) = 0;
  // Releases the attachments of the request's network that are not in `valid`, the runtime's list. A call
  // without the list is refused before.
  virtual Result<void> Gc(const CniRequest& request, const std::vector<ValidAttachment>& valid) = 0;
  // Whether ADD can work. kUnavailable and kLimited become the codes 50 and 51.
  virtual Result<void> Status(const CniRequest& request) = 0;
};

struct CniPluginInfo {
  std::string name;
  std::string summary;  // one line
  std::string help;     // the rest of --help
};

int RunCniPlugin(CniPlugin& plugin, const CniPluginInfo& info, int argc, char** argv);

// Reading and checking one CNI call (internal to skel and its tests).
// Threads: pure functions.

// getenv, or a table in tests.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// A failure that has a CNI code of its own (1, 4) instead of its Error's code.
struct CniFailure {
  int code = 0;
  Error error;
};

// Reads command and environment, not the configuration.
tl::expected<CniRequest, CniFailure> ReadEnvironment(const Environment& environment);

// Reads name and version from the configuration; for VERSION only the version.
tl::expected<void, CniFailure> ReadConfiguration(const std::string& config, CniRequest& request);

// The list of a GC call, "cni.dev/valid-attachments". Errors: kInvalid with the JSON pointer if the list is
// missing or null, or if an entry is not an attachment. An unreadable list must never look like an empty one.
Result<std::vector<ValidAttachment>> ReadValidAttachments(const std::string& config);

// The pod, from CNI_ARGS of Kubernetes' runtimes.
// Threads: pure functions. All are "" if the runtime did not set them.

using CniArgs = std::map<std::string, std::string>;

// "namespace/name"
std::string PodName(const CniArgs& args);
std::string PodNamespace(const CniArgs& args);
std::string PodUid(const CniArgs& args);

}  // namespace railhead
