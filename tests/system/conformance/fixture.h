// The tools of one check: new containers, calls of the plugin, and functions to examine the result.
//
// The fixture's end removes everything that the check made, also after a failure: attachments by DEL,
// namespaces, and what the target's cleanup command removes.
// Ownership: references to attachments live as long as the fixture.
// Threads: Call() from any; the rest from one.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/kernel.h"
#include "tests/system/conformance/json.h"
#include "tests/system/conformance/process.h"
#include "tests/system/conformance/sandbox.h"
#include "tests/system/conformance/target.h"

namespace railhead::conformance {

// One network in one container.
struct Attachment {
  std::string container;
  std::string ifname;
  std::shared_ptr<Sandbox> sandbox;
  std::string netns;  // the sandbox's path
  int slot = 0;       // for the setup command
  Json patch;         // the setup command's additions to the configuration
  Json result;        // of the last ADD that succeeded; null: none
};

// How a call differs from the default.
struct Request {
  std::string command;
  std::string version;  // "": the target's highest
  Json patch;           // merged into the configuration; a null member removes
  Json prev_result;     // null: none
  std::map<std::string, std::optional<std::string>> environment;  // nullopt: not set
  std::optional<std::string> input;                               // instead of the configuration
  Feeding feeding = Feeding::kWhole;
};

class Fixture {
 public:
  explicit Fixture(const Target& target);
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  ~Fixture();

  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] bool skipped() const { return skipped_; }
  // The check does not apply to this plugin; `why` is the reason.
  tl::unexpected<Error> NotApplicable(const std::string& why);

  // A container with a namespace, ready for ADD.
  Result<Attachment*> NewAttachment();
  // One more interface in the container of `other`.
  Result<Attachment*> NewAttachmentIn(const Attachment& other, const std::string& ifname);
  // Makes a container and runs ADD.
  Result<Attachment*> Attached(Request request = {});

  Outcome Call(const Attachment& attachment, const Request& request) const;
  // Succeeds when the command meets the specification. Otherwise the error has the plugin's output.
  Result<void> Add(Attachment& attachment, Request request = {});
  Result<void> Del(const Attachment& attachment, Request request = {}) const;
  Result<void> Check(const Attachment& attachment, Request request = {}) const;
  // The command has to fail by itself, not by a signal or the time limit.
  Result<void> MustFail(const Attachment& attachment, const Request& request, const std::string& why) const;

  // The state of the container, and of the host.
  [[nodiscard]] static Result<std::vector<std::string>> See(const Attachment& attachment);
  [[nodiscard]] static Result<std::vector<std::string>> SeeHost();
  [[nodiscard]] static Result<std::optional<Link>> LinkOf(const Attachment& attachment);
  [[nodiscard]] static Result<std::unique_ptr<RouteApi>> RouteIn(const Attachment& attachment);
  // Makes an interface with the attachment's name, as another plugin would.
  static Result<void> OccupyName(const Attachment& attachment);
  static Result<void> Rename(const Attachment& attachment, const std::string& from, const std::string& to);
  // Deletes the interface. One that cannot be deleted, such as hardware, gets another name.
  static Result<void> TakeAway(const Attachment& attachment);
  // These wait (Target::settle), since the kernel removes interfaces with a delay.
  [[nodiscard]] Result<void> ExpectSame(const Attachment& attachment, const std::vector<std::string>& before,
                                        const std::string& when) const;
  [[nodiscard]] Result<void> ExpectHostSame(const std::vector<std::string>& before,
                                            const std::string& when) const;
  // Expects nothing new on the host. Things may be missing that ended with a namespace.
  [[nodiscard]] Result<void> ExpectNothingNew(const std::vector<std::string>& before,
                                              const std::string& when) const;
  // Whether the IPAM plugin holds an address for it, by a CHECK of that plugin alone. If the plugin is
  // missing or cannot tell, it returns nullopt.
  [[nodiscard]] std::optional<bool> AddressHeld(const Attachment& attachment) const;
  // Calls the IPAM plugin alone.
  [[nodiscard]] Outcome CallIpam(const Attachment& attachment, const std::string& command) const;

 private:
  [[nodiscard]] std::string Configuration(const Attachment& attachment, const Request& request) const;
  [[nodiscard]] Outcome Run(const std::string& program, const Attachment& attachment,
                            const Request& request) const;
  [[nodiscard]] std::map<std::string, std::string> ShellEnvironment(const Attachment& attachment) const;
  Result<Attachment*> Register(Attachment attachment);

  const Target& target_;
  std::deque<Attachment> attachments_;
  std::vector<std::string> host_before_;
  bool skipped_ = false;
};

// An error with the text `why` unless the condition holds.
Result<void> Expect(bool condition, const std::string& why);

}  // namespace railhead::conformance
