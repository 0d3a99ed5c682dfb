// Repeats the announcements that ADDs request (cni/attachment/announcement_resend.h).
//
// It takes a lock that shows plugins that a process handles the requests. inotify reports requests in
// /run/railhead/announce. The announcer takes each one and removes its file. If several daemons run (an
// update), one has the lock, and the next takes over.
// Ownership: borrows the kernel. Threads: a thread of its own, which calls `report`;
// Stop() from any. A failure is reported and retried a second later.
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
  // `key` is empty when the report is not about an attachment.
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
