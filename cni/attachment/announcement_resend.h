// Resends announcements. A gratuitous ARP or unsolicited NA can get lost; a switch or neighbour then sends
// the pod's traffic to the address's last place.
//
// ADD announces once and does not wait. RFC 5227 2.3 has a second announcement 2 s after the first. RFC 4861
// 7.2.6 allows up to three, at least 1 s apart. So each announcement is sent again twice, 2 s apart. A child
// of the plugin does it, since plugins also work without railheadd. The child ends with its attachment, and
// after 5 s at the latest.
//
// Between two announcements the child holds neither a lock nor the pod's namespace, and it has no descriptor
// of the plugin. So the runtime gets the end of the plugin's output at once, DEL does not wait, and the
// kernel can delete the namespace. Threads: as Kernel. An announcement that fails is not sent again: nothing
// depends on it.
#pragma once

#include <chrono>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

inline constexpr int kResends = 2;
inline constexpr std::chrono::seconds kResendInterval{2};

enum class ResendResult {
  kSent,
  kBusy,  // an ADD or DEL of one of the devices is running
  kGone,  // no finished attachment of that key, or not in its namespace
};

// Announces all addresses of a finished attachment again.
Result<ResendResult> ResendAnnouncements(const Root& root, Kernel& kernel, const AttachmentKey& key);

// Arranges that the announcements of a finished ADD are sent again, and returns at once. Call it last, in a
// process with one thread: it forks.
void ResendInBackground(const Root& root, Kernel& kernel, const AttachmentKey& key);

}  // namespace railhead::attachment
