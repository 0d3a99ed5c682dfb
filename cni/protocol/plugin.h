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

#include <string>
#include <vector>

#include "cni/protocol/cni_request.h"
#include "netns/base/result.h"

namespace railhead {

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

}  // namespace railhead
