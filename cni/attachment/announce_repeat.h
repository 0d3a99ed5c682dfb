// Announcements, repeated: one gratuitous ARP or unsolicited NA can get lost, and a
// switch or neighbour then sends the pod's traffic to where the address was last.
//
// ADD announces once and does not wait. RFC 5227 2.3 has a second announcement 2 s after
// the first, RFC 4861 7.2.6 allows up to three at least 1 s apart: two repeats, 2 s
// apart. railheadd makes them, asked by a file (Repeat requests below); without it a
// child of the plugin does, which ends with its attachment and after 5 s at the latest.
//
// Nobody holds a lock or the pod's namespace between two announcements, and the child no
// descriptor of the plugin's: a runtime that waits for the end of the plugin's output
// gets it at once, DEL does not wait, and a namespace that is to die does.
// Threads: as Kernel. A repeat that fails is lost: nothing depends on it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

inline constexpr int kRepeats = 2;
inline constexpr std::chrono::seconds kRepeatInterval{2};

enum class Repeated {
  kSent,
  kBusy,  // an ADD or DEL of one of the devices is at work
  kGone,  // there is no finished attachment of that key, or not in its namespace
};

// Announces all addresses of a finished attachment once more.
Result<Repeated> AnnounceAgain(const Root& root, Kernel& kernel, const AttachmentKey& key);

// Sees to the repeats of an ADD that has just answered; returns at once. To be called
// last in a process with one thread: it may fork.
void RepeatLater(const Root& root, Kernel& kernel, const AttachmentKey& key);

// Repeat requests: /run/railhead/announce/HASH, whose content is the key. The taker, who
// removes it, is the process that holds the lock "railheadd".
inline constexpr const char* kRepeatTaker = "railheadd";
Result<void> WriteRepeatRequest(const Root& root, const AttachmentKey& key);
// nullopt: it is none, or gone.
Result<std::optional<AttachmentKey>> ReadRepeatRequest(const std::string& path);

}  // namespace railhead::attachment
