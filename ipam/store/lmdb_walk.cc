#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "ipam/store/lmdb.h"

namespace railhead::ipam {
namespace {

// What follows is mdb.c's, of version 0.9: MDB_page, MDB_db, MDB_meta, MDB_node and their flags.
static_assert(MDB_VERSION_MAJOR == 0 && MDB_VERSION_MINOR == 9, "another file format");
static_assert(sizeof(std::size_t) == sizeof(std::uint64_t), "page numbers are size_t");

constexpr std::uint32_t kLmdbMagic = 0xBEEFC0DE;
constexpr std::uint32_t kDataVersion = 1;
constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
constexpr std::uint64_t kFirstDataPage = 2;
constexpr int kMaxDepth = 32;  // CURSOR_STACK
constexpr std::uint64_t kMinPageSize = 256;
constexpr std::uint64_t kMaxPageSize = 0x8000;

enum PageKind : std::uint16_t { kBranch = 0x01, kLeaf = 0x02, kOverflow = 0x04, kMeta = 0x08 };
enum NodeKind : std::uint16_t { kInPage = 0, kBigData = 0x01, kSubTree = 0x02 };

struct PageHeader {
  std::uint64_t number;
  std::uint16_t pad;
  std::uint16_t kind;
  std::uint16_t lower;  // of an overflow page, `lower` and `upper` are its number of pages
  std::uint16_t upper;
};
constexpr std::size_t kHeaderSize = 16;
static_assert(sizeof(PageHeader) == kHeaderSize);

struct Tree {
  std::uint32_t pad;  // of the free list's: the page size
  std::uint16_t flags;
  std::uint16_t depth;
  std::uint64_t branch_pages;
  std::uint64_t leaf_pages;
  std::uint64_t overflow_pages;
  std::uint64_t entries;
  std::uint64_t root;
};
static_assert(sizeof(Tree) == 48);

struct Meta {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t address;
  std::uint64_t map_size;
  Tree free_list;
  Tree main;
  std::uint64_t last_page;
  std::uint64_t transaction;
};
static_assert(sizeof(Meta) == 136);

struct Node {
  std::uint16_t low;
  std::uint16_t high;
  std::uint16_t flags;
  std::uint16_t key_size;
};
constexpr std::size_t kNodeSize = 8;
static_assert(sizeof(Node) == kNodeSize);

template <typename T>
T At(const std::string& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

Error Wrong(std::uint64_t page, const std::string& what) {
  return {ErrorCode::kIo, "page " + std::to_string(page) + " " + what, "", 0};
}

// `size` bytes from `offset`; fewer where the file ends.
Result<std::string> ReadAt(int fd, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailSys(errno, "reading at byte " + std::to_string(offset + done));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

Result<Meta> ReadMeta(int fd, std::uint64_t page, std::uint64_t page_size) {
  const std::string bytes = RH_TRY(ReadAt(fd, page * page_size, kHeaderSize + sizeof(Meta)));
  if (bytes.size() != kHeaderSize + sizeof(Meta)) return Fail(Wrong(page, "is missing"));
  const auto header = At<PageHeader>(bytes, 0);
  const auto meta = At<Meta>(bytes, kHeaderSize);
  if (header.number != page || (header.kind & kMeta) == 0 || meta.magic != kLmdbMagic ||
      meta.version != kDataVersion)
    return Fail(Wrong(page, "is not a meta page of this format"));
  const std::uint64_t size = meta.free_list.pad;
  if (!std::has_single_bit(size) || size < kMinPageSize || size > kMaxPageSize ||
      (page_size != 0 && size != page_size))
    return Fail(Wrong(page, "names a page size of " + std::to_string(size)));
  return meta;
}

Result<Meta> ReadNewerMeta(int fd) {
  const Meta first = RH_TRY(ReadMeta(fd, 0, 0));
  const Meta second = RH_TRY(ReadMeta(fd, 1, first.free_list.pad));
  return second.transaction > first.transaction ? second : first;
}

class Walk {
 public:
  Walk(int fd, const Meta& meta, std::uint64_t whole_pages)
      : fd_(fd), meta_(meta), page_size_(meta.free_list.pad), used_(whole_pages, false) {}

  Result<void> Run() {
    RH_TRY_WRAP(WalkTree(meta_.free_list, true), "the tree of free pages");
    RH_TRY_WRAP(WalkTree(meta_.main, false), "the tree of entries");
    return CheckFree();
  }

 private:
  struct Totals {
    std::uint64_t branch = 0;
    std::uint64_t leaf = 0;
    std::uint64_t overflow = 0;
    std::uint64_t entries = 0;
  };

  // A leaf node's data, which may lie in overflow pages.
  struct Data {
    std::uint16_t flags = 0;
    std::uint64_t size = 0;
    std::size_t offset = 0;  // in its page; of the number of the first overflow page
  };

  Result<void> WalkTree(const Tree& tree, bool of_free_list) {
    if (tree.root == kNoPage) {
      if (tree.depth == 0 && tree.entries == 0) return {};
      return Fail(ErrorCode::kIo, "it has entries and no root");
    }
    if (tree.depth == 0 || tree.depth > kMaxDepth)
      return Fail(ErrorCode::kIo, "it is " + std::to_string(tree.depth) + " levels deep");
    if ((tree.flags & MDB_DUPSORT) != 0) return Fail(ErrorCode::kIo, "it has duplicate keys");
    Totals totals;
    RH_TRY(WalkPage(tree.root, tree.depth, of_free_list, &totals));
    if (totals.branch != tree.branch_pages || totals.leaf != tree.leaf_pages ||
        totals.overflow != tree.overflow_pages || totals.entries != tree.entries)
      return Fail(ErrorCode::kIo, "it has other pages or entries than the meta page counts");
    return {};
  }

  // `levels` with this one. At most kMaxDepth deep.
  // NOLINTNEXTLINE(misc-no-recursion)
  Result<void> WalkPage(std::uint64_t number, int levels, bool of_free_list, Totals* totals) {
    RH_TRY(Use(number, 1));
    const std::string page = RH_TRY(ReadPage(number));
    const auto header = At<PageHeader>(page, 0);
    const PageKind kind = levels == 1 ? kLeaf : kBranch;
    if (header.kind != kind) return Fail(Wrong(number, "is of kind " + std::to_string(header.kind)));
    if (header.lower <= kHeaderSize || header.lower % 2 != 0 || header.lower > header.upper ||
        header.upper > page_size_)
      return Fail(Wrong(number, "has wrong bounds"));
    ++(kind == kLeaf ? totals->leaf : totals->branch);
    for (std::size_t at = kHeaderSize; at < header.lower; at += 2) {
      const auto offset = At<std::uint16_t>(page, at);
      if (offset < header.upper || offset + kNodeSize > page_size_ ||
          offset + kNodeSize + At<Node>(page, offset).key_size > page_size_)
        return Fail(Wrong(number, "has a node outside of its bounds"));
      RH_TRY(kind == kLeaf ? LeafNode(number, page, offset, of_free_list, totals)
                           : WalkPage(ChildOf(page, offset), levels - 1, of_free_list, totals));
    }
    return {};
  }

  // The flags of a branch node are the upper bits of its page number.
  static std::uint64_t ChildOf(const std::string& page, std::size_t offset) {
    const auto node = At<Node>(page, offset);
    return node.low | std::uint64_t{node.high} << 16U | std::uint64_t{node.flags} << 32U;
  }

  // NOLINTNEXTLINE(misc-no-recursion): a named database has no named databases
  Result<void> LeafNode(std::uint64_t number, const std::string& page, std::size_t offset, bool of_free_list,
                        Totals* totals) {
    const auto node = At<Node>(page, offset);
    Data data{node.flags, node.low | std::uint64_t{node.high} << 16U, offset + kNodeSize + node.key_size};
    const std::uint64_t in_page = data.flags == kBigData ? sizeof(std::uint64_t) : data.size;
    if (data.offset + in_page > page_size_) return Fail(Wrong(number, "has a node that is too long"));
    ++totals->entries;
    if (data.flags == kBigData) {
      const std::string bytes = RH_TRY(Overflow(At<std::uint64_t>(page, data.offset), data.size, totals));
      return of_free_list ? NoteFree(number, bytes) : Result<void>();
    }
    if (data.flags == kInPage)
      return of_free_list ? NoteFree(number, page.substr(data.offset, data.size)) : Result<void>();
    if (data.flags != kSubTree || of_free_list || data.size != sizeof(Tree) || in_named_)
      return Fail(Wrong(number, "has a node of kind " + std::to_string(data.flags)));
    in_named_ = true;
    auto walked = WalkTree(At<Tree>(page, data.offset), false);
    in_named_ = false;
    return WithContext(std::move(walked), "a named database");
  }

  // The `size` bytes of data behind the header of the overflow pages from `number` on.
  Result<std::string> Overflow(std::uint64_t number, std::uint64_t size, Totals* totals) {
    RH_TRY(Use(number, 1));
    const auto header = At<PageHeader>(RH_TRY(ReadPage(number)), 0);
    const std::uint64_t pages = header.lower | std::uint64_t{header.upper} << 16U;
    if (header.kind != kOverflow || pages == 0 || pages * page_size_ < kHeaderSize + size)
      return Fail(Wrong(number, "is not an overflow page for " + std::to_string(size) + " bytes"));
    RH_TRY(Use(number + 1, pages - 1));
    totals->overflow += pages;
    return ReadAt(fd_, number * page_size_ + kHeaderSize, size);
  }

  // A record of the free list: how many, then page numbers, the highest first (midl.h).
  Result<void> NoteFree(std::uint64_t number, const std::string& bytes) {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    if (bytes.size() < kWord || At<std::uint64_t>(bytes, 0) > bytes.size() / kWord - 1)
      return Fail(Wrong(number, "has a list of free pages that is too short"));
    const auto count = At<std::uint64_t>(bytes, 0);
    for (std::uint64_t i = 1; i <= count; ++i) free_.push_back(At<std::uint64_t>(bytes, i * kWord));
    return {};
  }

  // No page is free twice, or free and in use. The final ones may never have been written.
  Result<void> CheckFree() {
    std::ranges::sort(free_);
    if (const auto twice = std::ranges::adjacent_find(free_); twice != free_.end())
      return Fail(Wrong(*twice, "is free twice"));
    for (const std::uint64_t number : free_) {
      if (number < kFirstDataPage || number > meta_.last_page)
        return Fail(Wrong(number, "is free, but not one of this file"));
      if (number < used_.size() && used_[number]) return Fail(Wrong(number, "is in use and free"));
    }
    return {};
  }

  Result<void> Use(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t number = first; number - first < count; ++number) {
      if (number < kFirstDataPage || number > meta_.last_page)
        return Fail(Wrong(number, "is in use, but not one of this file"));
      if (number >= used_.size()) return Fail(Wrong(number, "is in use and missing"));
      if (used_[number]) return Fail(Wrong(number, "is in two places"));
      used_[number] = true;
    }
    return {};
  }

  [[nodiscard]] Result<std::string> ReadPage(std::uint64_t number) const {
    std::string page = RH_TRY(ReadAt(fd_, number * page_size_, page_size_));
    if (page.size() != page_size_) return Fail(Wrong(number, "is in use and missing"));
    const auto claimed = At<PageHeader>(page, 0).number;
    if (claimed != number) return Fail(Wrong(number, "says that it is page " + std::to_string(claimed)));
    return page;
  }

  const int fd_;
  const Meta meta_;
  const std::size_t page_size_;
  std::vector<bool> used_;  // by number: the pages that are in the file whole
  std::vector<std::uint64_t> free_;
  bool in_named_ = false;
};

}  // namespace

Result<void> WalkLmdbFile(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return FailSys(errno, "reading its size");
  const Meta meta = RH_TRY(ReadNewerMeta(fd));
  return Walk(fd, meta, static_cast<std::uint64_t>(status.st_size) / meta.free_list.pad).Run();
}

}  // namespace railhead::ipam
