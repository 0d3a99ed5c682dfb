// Repeats the announcements that ADDs ask for (cni/attachment/announcement_resend.h).
//
// Takes the lock by which plugins know that someone does, and then every request in
// /run/railhead/announce, told by inotify; a request's file is removed when it is taken.
// Of several daemons (an update) one has the lock, and the next takes over.
// Ownership: borrows the kernel. Threads: a thread of its own, which calls `report`;
// Stop() from any. A failure is reported and tried again a second later.
#pragma once

#include <functional>
#include <thread>

#include "cni/attachment/announcement_resend.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/kernel.h"

namespace railhead::reconcile {

class Announcer {
 public:
  // `key` is empty when it is about no attachment.
  using Report =
      std::function<void(const AttachmentKey& key, const Result<attachment::ResendResult>& resent)>;

  Announcer(Root root, Kernel& kernel, Report report);
  ~Announcer();
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

  void Stop();

 private:
  class Loop;
  UniqueFd stop_;  // eventfd
  std::thread thread_;
};

}  // namespace railhead::reconcile
