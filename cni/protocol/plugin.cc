#include "cni/protocol/plugin.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cni/protocol/cni_result.h"
#include "cni/protocol/read_request.h"
#include "netns/base/exit_status.h"

namespace railhead {
namespace {

Result<std::string> ReadStandardInput() {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailSys(errno, "reading the network configuration from standard input");
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    // One byte above the reader's limit is enough for its error. The rest may be endless.
    if (text.size() > JsonDocument::kMaxSize) return text;
  }
}

bool Print(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

int PrintError(const std::string& version, int code, const Error& error) {
  const std::string& answered = IsSupportedCniVersion(version) ? version : SupportedCniVersions().back();
  (void)Print(CniErrorJson(answered, code, error.message, error.hint));
  return kExitFailed;
}

int PrintVersions(const std::string& version) {
  nlohmann::ordered_json json;
  json["cniVersion"] = IsSupportedCniVersion(version) ? version : SupportedCniVersions().back();
  json["supportedVersions"] = SupportedCniVersions();
  return Print(json.dump() + "\n") ? kExitDone : kExitFailed;
}

int CommandLine(const CniPluginInfo& info, const std::string& option) {
  if (option == "--version" || option == "-V")
    return Print(info.name + " " RAILHEAD_VERSION "\n") ? kExitDone : kExitFailed;
  const std::string usage =
      info.name + " - " + info.summary +
      "\n\nA CNI plugin: a container runtime runs it with CNI_COMMAND and its kin in the\n"
      "environment and a network configuration on standard input.\n\n"
      "usage: CNI_COMMAND=ADD|DEL|CHECK|GC|STATUS|VERSION ... " +
      info.name + "\n         < CONFIGURATION\n       " + info.name + " --help | --version\n\n" + info.help +
      "\nExit status: 0 done, 1 a CNI error (on standard output), 2 wrong command line.\n";
  if (option == "--help" || option == "-h") return Print(usage) ? kExitDone : kExitFailed;
  (void)std::fprintf(stderr, "%s: unknown option '%s'\n%s", info.name.c_str(), option.c_str(), usage.c_str());
  return kExitUsage;
}

// Returns what ADD prints. The other commands print nothing.
Result<std::string> Dispatch(CniPlugin& plugin, const CniRequest& request) {
  if (request.command == "ADD") return plugin.Add(request);
  if (request.command == "DEL") {
    RH_TRY(plugin.Del(request));
  } else if (request.command == "CHECK") {
    RH_TRY(plugin.Check(request));
  } else if (request.command == "GC") {
    const auto valid = RH_TRY(ReadValidAttachments(request.config));
    RH_TRY(plugin.Gc(request, valid));
  } else {
    RH_TRY(plugin.Status(request));
  }
  return std::string();
}

}  // namespace

namespace {

int Answer(CniPlugin& plugin, std::string* version) {
  auto request = ReadEnvironment([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (!request) return PrintError("", request.error().code, request.error().error);
  const auto config = ReadStandardInput();
  if (!config) return PrintError("", kCniIo, config.error());
  // VERSION answers even to an empty or broken configuration.
  if (auto read = ReadConfiguration(*config, *request); !read && request->command != "VERSION") {
    return PrintError(request->cni_version, read.error().code, read.error().error);
  }
  *version = request->cni_version;
  if (request->command == "VERSION") return PrintVersions(request->cni_version);

  const auto answer = Dispatch(plugin, *request);
  if (!answer) return PrintError(request->cni_version, CniCodeOf(answer.error().code), answer.error());
  return Print(*answer) ? kExitDone : kExitFailed;
}

}  // namespace

// Our code throws nothing, but libraries do, and a lack of memory does. Only a caught exception runs the undo
// steps, and the runtime gets a CNI error.
int RunCniPlugin(CniPlugin& plugin, const CniPluginInfo& info, int argc, char** argv) {
  if (argc > 1) return CommandLine(info, argv[1]);
  std::string version;
  try {
    return Answer(plugin, &version);
  } catch (const std::exception& error) {
    return PrintError(version, kCniInternal,
                      Error{ErrorCode::kInternal, std::string("unexpected: ") + error.what(),
                            "see the node's memory; report it if it stays", 0});
  }
}

}  // namespace railhead
