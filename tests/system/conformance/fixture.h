// What one check works with: fresh containers, calls of the plugin, looks at the result.
//
// Everything that a check made is taken back when its fixture goes, also after a
// failure: attachments by DEL, namespaces, the target's cleanup command.
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
  Json patch;         // what the setup command wants in the configuration
  Json result;        // of the last ADD that succeeded; null: none
};

// How a call differs from the usual one.
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
  // The check says nothing about this plugin, and why.
  tl::unexpected<Error> NotApplicable(const std::string& why);

  // A container with a namespace, ready for ADD.
  Result<Attachment*> NewAttachment();
  // One more interface in the container of `other`.
  Result<Attachment*> NewAttachmentIn(const Attachment& other, const std::string& ifname);
  // Both of them: made and ADDed.
  Result<Attachment*> Attached(Request request = {});

  Outcome Call(const Attachment& attachment, const Request& request) const;
  // Success is what the specification asks of the command; otherwise the error says
  // what the plugin said.
  Result<void> Add(Attachment& attachment, Request request = {});
  Result<void> Del(const Attachment& attachment, Request request = {}) const;
  Result<void> Check(const Attachment& attachment, Request request = {}) const;
  // The command has to fail by itself: not by a signal, not by the time limit.
  Result<void> MustFail(const Attachment& attachment, const Request& request, const std::string& why) const;

  // Of the container and the host.
  [[nodiscard]] static Result<std::vector<std::string>> See(const Attachment& attachment);
  [[nodiscard]] static Result<std::vector<std::string>> SeeHost();
  [[nodiscard]] static Result<std::optional<Link>> LinkOf(const Attachment& attachment);
  [[nodiscard]] static Result<std::unique_ptr<RouteApi>> RouteIn(const Attachment& attachment);
  // Somebody else's interface of the attachment's name, as another plugin makes one.
  static Result<void> OccupyName(const Attachment& attachment);
  static Result<void> Rename(const Attachment& attachment, const std::string& from, const std::string& to);
  // Deletes the interface; one that cannot be deleted, as hardware, gets another name.
  static Result<void> TakeAway(const Attachment& attachment);
  // These wait (Target::settle) for it, since the kernel removes interfaces in its own time.
  [[nodiscard]] Result<void> ExpectSame(const Attachment& attachment, const std::vector<std::string>& before,
                                        const std::string& when) const;
  [[nodiscard]] Result<void> ExpectHostSame(const std::vector<std::string>& before,
                                            const std::string& when) const;
  // Nothing new on the host; what is missing died with a namespace.
  [[nodiscard]] Result<void> ExpectNothingNew(const std::vector<std::string>& before,
                                              const std::string& when) const;
  // Whether the IPAM plugin keeps an address for it, asked by a CHECK of that plugin alone;
  // nullopt when there is none or it cannot tell.
  [[nodiscard]] std::optional<bool> AddressHeld(const Attachment& attachment) const;
  // DEL of the IPAM plugin alone.
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

// The condition holds, or `why` is what is wrong.
Result<void> Expect(bool condition, const std::string& why);

}  // namespace railhead::conformance
