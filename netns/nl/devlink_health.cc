#include "netns/nl/devlink_health.h"

#include <linux/netlink.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <utility>

#include "netns/nl/devlink_messages.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead {

struct DevlinkHealth::State {
  State(nl::Socket ask, nl::Socket listen, nl::DevlinkFamily which)
      : asking(std::move(ask)), events(std::move(listen)), family(which) {}

  void Take(const nl::DevlinkNews& news) {
    if (!news.instance) {
      failed[{news.address, news.reporter}] = news.failed;
      return;
    }
    std::erase_if(failed, [&](const auto& known) { return known.first.first == news.address; });
  }

  nl::Socket asking;
  nl::Socket events;
  nl::DevlinkFamily family;
  // By PCI address and reporter; false also for those that do not exist.
  std::map<std::pair<std::string, std::string>, bool> failed;
};

DevlinkHealth::DevlinkHealth(std::unique_ptr<State> state) : state_(std::move(state)) {}
DevlinkHealth::DevlinkHealth(DevlinkHealth&&) noexcept = default;
DevlinkHealth& DevlinkHealth::operator=(DevlinkHealth&&) noexcept = default;
DevlinkHealth::~DevlinkHealth() = default;

Result<DevlinkHealth> DevlinkHealth::Open() {
  const std::string what = "opening devlink";
  nl::Socket asking = RH_TRY_WRAP(nl::Socket::Open(NETLINK_GENERIC), what);
  const nl::DevlinkFamily family = RH_TRY(nl::FindDevlink(asking, what));
  if (family.events == 0) return Fail(ErrorCode::kUnsupported, what + ": the kernel sends no devlink events");
  nl::Socket events = RH_TRY_WRAP(nl::Socket::Open(NETLINK_GENERIC), what);
  RH_TRY_WRAP(events.Join(family.events), what);
  return DevlinkHealth(std::make_unique<State>(std::move(asking), std::move(events), family));
}

Result<void> DevlinkHealth::Refresh() {
  for (;;) {
    const auto took =
        RH_TRY_WRAP(state_->events.WaitEvents(std::chrono::steady_clock::now(),
                                              [&](const nl::Received& received) {
                                                if (received.type != state_->family.id) return;
                                                if (const auto news = nl::ParseDevlinkNews(received))
                                                  state_->Take(*news);
                                              }),
                    "following devlink");
    if (took == nl::Socket::Wait::kTimeout) return {};
    // Whatever events were lost, asking again gives the present state.
    if (took == nl::Socket::Wait::kLost) state_->failed.clear();
  }
}

Result<bool> DevlinkHealth::HasFailed(const std::string& address, const std::string& reporter) {
  const std::pair key(address, reporter);
  if (const auto known = state_->failed.find(key); known != state_->failed.end()) return known->second;
  nl::Message message = nl::GetHealthReporterMessage(state_->family.id, address, reporter);
  bool failed = false;
  const auto got = state_->asking.Get(message, [&](const nl::Received& received) {
    const auto news = nl::ParseDevlinkNews(received);
    failed = news && news->reporter == reporter && news->failed;
  });
  if (!got) {
    // No devlink instance; no such reporter (net/devlink/health.c); none at all.
    const int why = got.error().sys_errno;
    const bool absent = why == ENODEV || why == EINVAL || why == ENOENT || why == EOPNOTSUPP;
    if (!absent)
      return Fail(Wrap(got.error(), "asking for devlink health reporter " + reporter + " of " + address));
  }
  state_->failed.emplace(key, failed);
  return failed;
}

}  // namespace railhead
