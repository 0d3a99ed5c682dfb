// Whether an LMDB file has every page that its newest transaction uses.
//
// The size of the file does not tell. LMDB counts a page that a transaction takes from the end of
// the file and frees again, and never writes it (mdb.c: mdb_page_flush() skips P_LOOSE; "the file
// may be shorter if the freeDB lists the final pages"). The walk reads by pread(): a page that is
// missing is an error here, and a SIGBUS in LMDB's map.
//
// It starts at the newer of the two meta pages, as LMDB does. It reads the free list's tree, the main
// tree and the trees of named databases whole. It checks page numbers, kinds of pages, the bounds of
// nodes, overflow pages, that no page is used twice or used and free, and the totals of each tree.
// Format: version 1, that of LMDB 0.9, in the machine's byte order. Duplicate keys (MDB_DUPSORT) are
// refused: the store has none.
// Errors: kIo with the page and what is wrong with it. Threads: none; reads only.
#pragma once

#include "netns/base/result.h"

namespace railhead {

Result<void> WalkLmdbFile(int fd);

}  // namespace railhead
