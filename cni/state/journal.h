// The journal of attachments: what is about to be changed and what it was
// before, written before the kernel is touched.
//
// One entry per attachment, keyed by network name, container id and CNI_IFNAME;
// entries of one sandbox share a directory, so that siblings are found without
// reading the others. The lock file of a device holds the path of the entry that has the device,
// and is empty while nobody has it; a device that was bound to a slot is held under the slot's id, too.
// Files live on tmpfs and are replaced atomically: durable here means
// that they survive the death of any process. An entry of an earlier boot (if
// /run is kept) counts as absent.
//
// Order of writing: entry (kPlanned), lock files, kernel, entry (kDone); of
// removing: kernel, lock files, entry. So a device that was touched is always
// found, and a lock file that names no entry means that nothing was touched.
//
// Threads and processes: callers hold the lock of the device (DeviceLocks) while
// they change its entry. Errors: kIo; an entry that cannot be read is kMalformed or kInvalid and names its
// file. Write() refuses what could not be read again, before anything is written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/nl/device_state.h"
#include "netns/nl/link.h"
#include "netns/nl/route.h"
#include "netns/nl/vf_settings.h"
#include "netns/ns/sysctl.h"

namespace railhead {

struct AttachmentKey {
  std::string network;
  std::string container_id;
  std::string ifname;

  auto operator<=>(const AttachmentKey&) const = default;
  [[nodiscard]] std::string ToString() const { return container_id + "/" + network + "@" + ifname; }
};

enum class Phase : std::uint8_t {
  kPlanned,  // the kernel may have been touched; ADD has not finished
  kDone,     // ADD succeeded
};

// One device of an attachment: the plan of its ADD, and what it was before.
struct AttachedDevice {
  std::string device;  // BDF
  std::string pf;      // BDF of its PF; empty: the device is a PF
  int vf = -1;
  std::string rail;      // name in fabric.json; may be empty
  std::string pod_name;  // netdev name in the pod
  // Late binding: what kubelet gave the pod in the device's place, and of which resource;
  // else empty.
  std::string slot;
  std::string resource;

  // As kubelet, CDI and allocation records know it.
  [[nodiscard]] const std::string& KubeletId() const { return slot.empty() ? device : slot; }
  // Whether it is in nccl.conf.
  [[nodiscard]] bool InNcclConf() const { return nccl.wanted && rdma.gid_index; }

  // As ADD found it on the host, where restore brings it back to.
  struct Before {
    std::string driver;       // to bind again when a rebind was interrupted
    bool user_space = false;  // bound to vfio-pci or its like: no netdev, set up through the PF only
    // The link has no PCI function: a stand-in, or a kernel before 5.14. Only such a link is found again by
    // name and MAC, which a pod can give to any interface.
    bool parentless = false;
    std::string name;
    MacAddress mac;
    bool up = false;
    std::vector<std::string> alt_names;
    LinkSettings link;     // all of them; of user_space none
    DeviceState settings;  // of the driver
    std::optional<VfSettings> vf;

    bool operator==(const Before&) const = default;
  } before;

  // What ADD promises: CHECK compares with it. What it sets through the PF, restore puts back.
  struct Wanted {
    VfSettings vf;  // the MAC of a PF, too
    LinkSettings link;
    std::vector<std::string> alt_names;
    // By path below /proc/sys; in a configuration "IFNAME" stands for the interface.
    std::vector<Sysctl> sysctls;

    bool operator==(const Wanted&) const = default;
  } wanted;

  // The settings for which DEL binds the driver anew, and why. Written before the rebind, so that the next
  // DEL finishes one that was interrupted. Empty: none.
  std::string rebound_for;

  struct Addressing {
    std::uint32_t table = 0;  // of the rules, which restore removes; 0: none
    std::vector<IpPrefix> addresses;
    std::vector<Route> routes;  // Route::link is 0: the index is not known before the move

    bool operator==(const Addressing&) const = default;
  } addressing;

  struct Rdma {
    std::string device;  // that the pod uses; empty: none
    bool soft = false;   // made by ADD, removed by DEL
    bool moved = false;  // exclusive mode: moved by ADD, moved back by DEL
    // Set when done.
    std::optional<int> gid_index;
    std::string uverbs;  // "uverbs3"

    bool operator==(const Rdma&) const = default;
  } rdma;

  struct Nccl {
    bool wanted = false;  // this device is to be in nccl.conf
    std::optional<int> traffic_class;
    std::optional<int> service_level;

    bool operator==(const Nccl&) const = default;
  } nccl;

  bool operator==(const AttachedDevice&) const = default;
};

// One run of the IPAM plugin; DEL repeats it with the same words.
struct IpamCall {
  std::string ifname;  // CNI_IFNAME that it was given
  std::string config;
  // Its ADD answered with an error: it holds nothing. Else it may have allocated, or may yet.
  bool refused = false;

  bool operator==(const IpamCall&) const = default;
};

struct JournalEntry {
  AttachmentKey key;
  std::string boot_id;
  Phase phase = Phase::kPlanned;
  std::string netns;              // path as the runtime gave it
  std::uint64_t netns_inode = 0;  // which namespace that was
  std::int64_t since = 0;         // seconds since the epoch
  std::vector<AttachedDevice> devices;
  std::string ipam_type;  // empty: none is asked
  std::vector<IpamCall> ipam_calls;
  // For who releases it without the runtime: where plugins are, and whose pod.
  std::vector<std::string> cni_path;
  std::map<std::string, std::string> cni_args;
  bool handoff_required = false;

  bool operator==(const JournalEntry&) const = default;
};

// The entries that say what a device was before it is reset between two pods (cni/attachment/reset.h) are no
// container's of a runtime: CNI has ids begin with a letter or a digit.
inline constexpr const char* kResetContainer = "_reset";
inline AttachmentKey ResetKey(const std::string& device) {
  return {kResetContainer, kResetContainer, device};
}
inline bool IsReset(const JournalEntry& entry) {
  return entry.key.container_id == kResetContainer;
}

// An entry that cannot be read: a file of another version, or a damaged one. Its path and the lock files of
// its devices still say what it holds.
struct UnreadableEntry {
  AttachmentKey key;  // by its path
  std::string path;
  std::set<std::string> devices;  // and slots, whose lock files name it
  Error error;
};

// All that the journal's directories hold.
struct JournalScan {
  std::vector<JournalEntry> entries;  // of this boot
  std::vector<JournalEntry> earlier;  // of earlier boots, which nobody else sees
  std::vector<UnreadableEntry> unreadable;
  // Devices whose lock file names none of the entries above.
  std::set<std::string> loose;
};

class Journal {
 public:
  explicit Journal(Root root) : root_(std::move(root)) {}

  [[nodiscard]] Result<std::optional<JournalEntry>> Find(const AttachmentKey& key) const;
  // The entry that holds the device, or the slot of that id.
  [[nodiscard]] Result<std::optional<JournalEntry>> FindByDevice(const std::string& device) const;
  // Whether the device's lock file names this entry. Does not read the entry.
  [[nodiscard]] Result<bool> IsHeldBy(const std::string& device, const AttachmentKey& key) const;
  // All entries of one sandbox, by network and interface name.
  [[nodiscard]] Result<std::vector<JournalEntry>> OfSandbox(const std::string& container_id) const;
  // Those besides the caller's own, which is not read: of several devices it is long.
  [[nodiscard]] Result<std::vector<JournalEntry>> SiblingsOf(const AttachmentKey& key) const;
  // Whether there are any, unreadable ones included.
  [[nodiscard]] Result<bool> HasSiblings(const AttachmentKey& key) const;
  // Devices and slots that an entry holds, by their lock files alone: cheap, for who shows it.
  // Lock files that cannot be listed are as if there were none.
  [[nodiscard]] std::set<std::string> HeldDevices() const;
  // Of these, those that are reset between two pods; likewise.
  [[nodiscard]] std::set<std::string> DevicesInReset() const;

  // Writes the entry, then the lock files of its devices.
  [[nodiscard]] Result<void> Write(const JournalEntry& entry) const;
  // Its devices are on the host again, and something else is left: the entry goes on without them, so that
  // the next pod can have them.
  [[nodiscard]] Result<void> FreeDevices(const JournalEntry& entry) const;
  // Lets go of its devices (of those that are still its own), then removes the entry. Removing what is not
  // there succeeds.
  [[nodiscard]] Result<void> Remove(const JournalEntry& entry) const;
  // Of an entry that is not there: what a writer left that was killed before it was.
  [[nodiscard]] Result<void> RemoveHalf(const AttachmentKey& key) const;

  // For all who look at more than one entry: an unreadable one hides no other. What Scan() says of others
  // than the caller's own can be over a moment later: look again under the device's lock.
  [[nodiscard]] Result<JournalScan> Scan() const;
  // What is known of the file at `path` that could not be read.
  [[nodiscard]] Result<UnreadableEntry> Describe(const std::string& path, Error error) const;
  // Find() for entries of any boot.
  [[nodiscard]] Result<std::optional<JournalEntry>> FindOfAnyBoot(const AttachmentKey& key) const;
  // Whether an entry of any boot, or a damaged one, has the device or is of the sandbox.
  [[nodiscard]] Result<bool> HoldsDevice(const std::string& device) const;
  [[nodiscard]] Result<bool> HoldsSandbox(const std::string& container_id) const;
  // Empties the device's lock file unless an entry has the device; true when it was not empty.
  [[nodiscard]] Result<bool> Free(const std::string& device) const;

  // Of an unreadable entry: lets go of its devices and removes the file.
  [[nodiscard]] Result<void> RemoveUnreadable(const UnreadableEntry& entry) const;

  // The file of an entry, for those who wait for its end.
  [[nodiscard]] std::string PathOf(const AttachmentKey& key) const;
  // The files of all entries, and one of them, of whichever boot.
  [[nodiscard]] Result<std::vector<std::string>> Paths() const;
  [[nodiscard]] Result<std::optional<JournalEntry>> ReadAt(const std::string& path) const;

 private:
  [[nodiscard]] std::string DirectoryOf(const std::string& container_id) const;
  // Of this boot.
  [[nodiscard]] Result<std::optional<JournalEntry>> Read(const std::string& path) const;
  [[nodiscard]] Result<std::vector<std::string>> PathsOf(const std::string& container_id) const;
  // The relative path that the device's lock file names; empty: none.
  [[nodiscard]] Result<std::string> HolderOf(const std::string& device) const;
  [[nodiscard]] Result<void> LetGo(const JournalEntry& entry) const;
  // `but`: a path that is left out.
  [[nodiscard]] Result<std::vector<JournalEntry>> ReadSandbox(const std::string& container_id,
                                                              const std::string& but) const;

  Root root_;
};

// JournalEntry as text (internal to state and its tests).

Result<std::string> FormatJournalEntry(const JournalEntry& entry);
Result<JournalEntry> ParseJournalEntry(const std::string& text, const std::string& what);

// What can still be read of an entry that ParseJournalEntry() refuses: each device by itself.
struct RecoveredEntry {
  JournalEntry entry;                // its readable devices only; key by the file's path
  std::set<std::string> unreadable;  // devices of which nothing but the address is known
  std::vector<std::string> lost;     // what cannot be restored, and why, for people
};
RecoveredEntry RecoverJournalEntry(const std::string& text, const UnreadableEntry& file);

}  // namespace railhead
