#!/bin/bash
# durable.sh RAILCTL - whatever a loss of power leaves of `railctl install` is a whole program: each new
# file is on the disk before it gets its name, and the names are before railctl says that it is done.
# And programs that are there already are no reason to write: the directory may be read-only.
set -euo pipefail
railctl=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/from" "$work/to"
for name in railhead railhead-ipam; do
    printf '#!/bin/sh\necho %s 1.2.3\n' "$name" >"$work/from/$name"
    chmod 755 "$work/from/$name"
done
# LeakSanitizer does not work below ptrace.
RAILHEAD_ROOT=$work ASAN_OPTIONS=detect_leaks=0 strace -y -e trace=fsync,rename -o "$work/trace" \
    "$railctl" install cni --from /from --to /to >/dev/null
calls=$(sed -nE "s|^fsync\([0-9]+<$work/([^>]*)>\) += 0\$|fsync \1|p; s|^rename\(\"[^\"]*\", \"$work/([^\"]*)\"\) += 0\$|rename \1|p" "$work/trace")
expected='fsync to/railhead.new
fsync to/railhead-ipam.new
rename to/railhead
rename to/railhead-ipam
fsync to'
[ "$calls" = "$expected" ] || { printf 'durable.sh: it did:\n%s\nnot:\n%s\n' "$calls" "$expected" >&2; exit 1; }

# As a read-only file system answers, also for a name that is not there.
readonly_calls=unlink,unlinkat,rename,renameat,renameat2,mkdir,chmod,fchmod
RAILHEAD_ROOT=$work ASAN_OPTIONS=detect_leaks=0 strace -o "$work/trace" -e trace="$readonly_calls" -e inject="$readonly_calls:error=EROFS" \
    "$railctl" install cni --from /from --to /to >"$work/answer" 2>&1 ||
    { printf 'durable.sh: the same programs in a read-only directory:\n%s\n' "$(<"$work/answer")" >&2; exit 1; }
[ "$(grep -c unchanged "$work/answer")" = 2 ] || { printf 'durable.sh: not unchanged:\n%s\n' "$(<"$work/answer")" >&2; exit 1; }
