// The journal of attachments: what ADD will change, and what it was before. ADD writes it before it changes
// the kernel.
//
// One entry per attachment, keyed by network name, container id and CNI_IFNAME. Entries of one sandbox share
// a folder, so siblings are found without reading the other entries. The lock file of a device holds the path
// of the entry that has the device, and is empty while no entry has it. A device that was bound to a slot is
// also held under the slot's id. Files are on tmpfs and are replaced atomically: durable here means that they
// survive the death of any process. An entry of an earlier boot (if /run is kept) counts as absent.
//
// Order of writing: entry (kPlanned), lock files, kernel, entry (kDone). Order of removing: kernel, lock
// files, entry. So a device that ADD changed is always found, and a lock file that names no entry means that
// nothing was changed.
//
// Threads and processes: callers hold the lock of the device (DeviceLocks) while they change its entry.
// Errors: kIo. An entry that cannot be read is kMalformed or kInvalid, and the error names its file. Write()
// refuses an entry that could not be read again, before it writes anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
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
  kPlanned,  // ADD has not finished, and may have changed the kernel
  kDone,     // ADD succeeded
};

// One device of an attachment: the plan of its ADD, and what it was before.
struct AttachedDevice {
  std::string device;  // BDF
  std::string pf;      // BDF of its PF; empty: the device is a PF
  int vf = -1;
  std::string rail;      // name in fabric.json; may be empty
  std::string pod_name;  // netdev name in the pod
  // Late binding: the slot that kubelet allocated instead of the device, and its resource. Otherwise empty.
  std::string slot;
  std::string resource;

  // The id that kubelet, CDI and allocation records use.
  [[nodiscard]] const std::string& KubeletId() const { return slot.empty() ? device : slot; }
  // Whether it is in nccl.conf.
  [[nodiscard]] bool InNcclConf() const { return nccl.enabled && rdma.gid_index; }

  // The device's state on the host before ADD, which restore brings back.
  struct Before {
    std::string driver;  // restore binds it if a rebind was interrupted
    bool user_space =
        false;  // bound to vfio-pci or a similar driver: no netdev, configured through the PF only
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

  // What ADD sets and CHECK compares with. Restore undoes what ADD set through the PF.
  struct Requested {
    VfSettings vf;  // the MAC of a PF, too
    LinkSettings link;
    std::vector<std::string> alt_names;
    // By path below /proc/sys; in a configuration "IFNAME" stands for the interface.
    std::vector<Sysctl> sysctls;

    bool operator==(const Requested&) const = default;
  } requested;

  // The settings because of which DEL binds the driver again. Written before the rebind, so that the next DEL
  // completes an interrupted one. Empty: none.
  std::string rebound_for;

  struct Addressing {
    std::uint32_t table = 0;  // of the rules, which restore removes; 0: none
    std::vector<IpPrefix> addresses;
    std::vector<Route> routes;  // Route::link is 0: the index is not known before the move

    bool operator==(const Addressing&) const = default;
  } addressing;

  struct Rdma {
    std::string device;  // RDMA device that the pod uses; empty: none
    bool soft = false;   // made by ADD, removed by DEL
    bool moved = false;  // exclusive mode: moved by ADD, moved back by DEL
    // Set when done.
    std::optional<int> gid_index;
    std::string uverbs;  // "uverbs3"

    bool operator==(const Rdma&) const = default;
  } rdma;

  struct Nccl {
    bool enabled = false;  // this device is to be in nccl.conf
    std::optional<int> traffic_class;
    std::optional<int> service_level;

    bool operator==(const Nccl&) const = default;
  } nccl;

  bool operator==(const AttachedDevice&) const = default;
};

// One run of the IPAM plugin; DEL repeats it with the same configuration.
struct IpamCall {
  std::string ifname;  // its CNI_IFNAME
  std::string config;
  // Its ADD returned an error: it holds nothing. Otherwise it may have assigned addresses, or may still do
  // so.
  bool refused = false;

  bool operator==(const IpamCall&) const = default;
};

struct JournalEntry {
  AttachmentKey key;
  std::string boot_id;
  Phase phase = Phase::kPlanned;
  std::string netns;              // the runtime's path of the pod's namespace
  std::uint64_t netns_inode = 0;  // that namespace's inode
  std::int64_t since = 0;         // seconds since the epoch
  std::vector<AttachedDevice> devices;
  std::string ipam_type;  // empty: no IPAM plugin
  std::vector<IpamCall> ipam_calls;
  // For a release without the runtime: where plugins are, and which pod it is.
  std::vector<std::string> cni_path;
  std::map<std::string, std::string> cni_args;
  bool nccl_config_required = false;
  std::string device_info_file;  // runtimeConfig.CNIDeviceInfoFile; empty: none

  bool operator==(const JournalEntry&) const = default;
};

// Its devices and their slots. A change of the entry needs the locks of all of them.
std::set<std::string> DevicesOf(const JournalEntry& entry);

// A reset between two pods (cni/attachment/reset.h) writes an entry, too. Its container id cannot be a
// runtime's: CNI container ids begin with a letter or a digit.
inline constexpr const char* kResetContainer = "_reset";
inline AttachmentKey ResetKey(const std::string& device) {
  return {kResetContainer, kResetContainer, device};
}
inline bool IsReset(const JournalEntry& entry) {
  return entry.key.container_id == kResetContainer;
}

// An entry that cannot be read: a file of another version, or a damaged one. Its path and the lock files
// still show its key and devices.
struct UnreadableEntry {
  AttachmentKey key;  // by its path
  std::string path;
  std::set<std::string> devices;  // and slots, whose lock files name it
  Error error;
};

// All entries of the journal.
struct JournalScan {
  std::vector<JournalEntry> entries;  // of this boot
  std::vector<JournalEntry> earlier;  // of earlier boots, which Find() and FindByDevice() ignore
  std::vector<UnreadableEntry> unreadable;
  // Devices whose lock file names none of the entries above.
  std::set<std::string> orphaned;
};

class Journal {
 public:
  explicit Journal(Root root) : root_(std::move(root)) {}

  [[nodiscard]] Result<std::optional<JournalEntry>> Find(const AttachmentKey& key) const;
  // The entry that holds the device, or the slot of that id.
  [[nodiscard]] Result<std::optional<JournalEntry>> FindByDevice(const std::string& device) const;
  // Whether the device's lock file names this entry. Does not read the entry.
  [[nodiscard]] Result<bool> IsHeldBy(const std::string& device, const AttachmentKey& key) const;
  // All entries of one sandbox, sorted by network and interface name.
  [[nodiscard]] Result<std::vector<JournalEntry>> OfSandbox(const std::string& container_id) const;
  // The sandbox's entries except `key`'s own. That is not read, since an entry of several devices is long.
  [[nodiscard]] Result<std::vector<JournalEntry>> SiblingsOf(const AttachmentKey& key) const;
  // Whether the sandbox has other entries, including unreadable ones.
  [[nodiscard]] Result<bool> HasSiblings(const AttachmentKey& key) const;
  // Devices and slots that an entry holds, from the lock files alone, which is cheap. Empty if these cannot
  // be listed.
  [[nodiscard]] std::set<std::string> HeldDevices() const;
  // The held devices that are being reset between two pods; likewise.
  [[nodiscard]] std::set<std::string> DevicesInReset() const;

  // Writes the entry, then the lock files of its devices.
  [[nodiscard]] Result<void> Write(const JournalEntry& entry) const;
  // For an entry whose devices are on the host again, while its release has not finished. Writes the entry
  // without devices, so that the next pod can get them.
  [[nodiscard]] Result<void> FreeDevices(const JournalEntry& entry) const;
  // Releases the devices that are still its own, then removes the entry. Succeeds without an entry.
  [[nodiscard]] Result<void> Remove(const JournalEntry& entry) const;
  // Removes a partial entry: the temporary file of a writer that was killed.
  [[nodiscard]] Result<void> RemovePartial(const AttachmentKey& key) const;

  // Reads all entries; an unreadable one hides no other. Entries of other calls can change a moment later:
  // read them again under the device's lock.
  [[nodiscard]] Result<JournalScan> Scan() const;
  // What path and lock files show of the file at `path` that could not be read.
  [[nodiscard]] Result<UnreadableEntry> Describe(const std::string& path, Error error) const;
  // Find() for entries of any boot.
  [[nodiscard]] Result<std::optional<JournalEntry>> FindOfAnyBoot(const AttachmentKey& key) const;
  // Whether an entry of any boot, also a damaged one, has the device, or belongs to the sandbox.
  [[nodiscard]] Result<bool> HoldsDevice(const std::string& device) const;
  [[nodiscard]] Result<bool> HoldsSandbox(const std::string& container_id) const;
  // Empties the device's lock file, unless an entry has the device. true: it was not empty.
  [[nodiscard]] Result<bool> Free(const std::string& device) const;

  // Releases the devices of an unreadable entry and removes its file.
  [[nodiscard]] Result<void> RemoveUnreadable(const UnreadableEntry& entry) const;

  // The file of an entry, for waiting until it is removed.
  [[nodiscard]] std::string PathOf(const AttachmentKey& key) const;
  // The files of all entries, and the entry in one of them, of any boot.
  [[nodiscard]] Result<std::vector<std::string>> Paths() const;
  [[nodiscard]] Result<std::optional<JournalEntry>> ReadAt(const std::string& path) const;

 private:
  // Below the folder of attachments. A network name has no '@', so the first '@' separates.
  static std::string RelativePathOf(const AttachmentKey& key);
  // Of the entry's lock files: devices first, then slots.
  static std::vector<std::string> NamesOf(const JournalEntry& entry);
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

// The readable part of an entry that ParseJournalEntry() refuses: each device is read separately.
struct RecoveredEntry {
  JournalEntry entry;                // its readable devices only; key by the file's path
  std::set<std::string> unreadable;  // devices of which only the address is known
  std::vector<std::string> lost;     // messages: what cannot be restored, and why
};
RecoveredEntry RecoverJournalEntry(const std::string& text, const UnreadableEntry& file);

}  // namespace railhead
