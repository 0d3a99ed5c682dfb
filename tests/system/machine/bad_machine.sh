#!/bin/bash
# bad_machine.sh - setup.sh, the build, the guest and the demo on a machine without root or sudo, with an old QEMU, with a
# mirror that does not answer, or with a full disk; and a demo that is stopped.
#
# Each says which step failed and what to do, and leaves nothing half done. Nothing is installed and no network is
# used: what asks Debian's mirrors is a stand-in here, or apt with folders of its own and a mirror on this machine.
# Needs root: a mount namespace of its own, where folders have small disks.
# exit status: 0 all held
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
[ -n "${MACHINE_TEST_INSIDE:-}" ] || MACHINE_TEST_INSIDE=1 exec unshare --mount --propagation private "$here/bad_machine.sh"
umask 022
# Where others may read, too; nothing of it outlives the namespace.
work=/mnt
mount -t tmpfs -o mode=755 tmpfs "$work" && mkdir "$work"/{bin,repo,tmp} && mount --bind "$repo" "$work/repo" || exit
repo=$work/repo
export TMPDIR=$work/tmp
export PATH=$work/bin:$PATH LC_ALL=C
unset APT_CONFIG
failed=0 silent=''
trap '[ -z "$silent" ] || kill "$silent"' EXIT

# program NAME: a stand-in of it, of stdin.
program() { { echo '#!/bin/bash' && cat; } >"$work/bin/$1" && chmod 755 "$work/bin/$1"; }
# expect STATUS TEXT... -- COMMAND...: it ends with that status and says all of that.
expect() {
    local wanted=$1 texts=() text status=0
    shift
    while [ "$1" != -- ]; do texts+=("$1") && shift; done
    shift
    "$@" >"$work/said" 2>&1 || status=$?
    for text in "${texts[@]}"; do grep -qF -- "$text" "$work/said" || status="$status without '$text'"; done
    [ "$status" = "$wanted" ] && return
    echo "bad_machine.sh: $*: exit status $status instead of $wanted:" >&2
    cat "$work/said" >&2
    failed=1
}
# not WHAT COMMAND...: it fails.
not() { ! "${@:2}" >/dev/null 2>&1 || { echo "bad_machine.sh: $1" >&2 && failed=1; }; }
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups -- env -u XDG_CACHE_HOME HOME=/nonexistent "$@"; }
in_setup() { bash -c '. "$0/tests/setup.sh" && "$@"' "$repo" "$@"; }
small_disk() { mount -t tmpfs -o size="$1",mode=755 tmpfs "$2"; } # SIZE FOLDER

# ---- neither root nor sudo ------------------------------------------------------------------
sudo=$(command -v sudo) && mount --bind /dev/null "$sudo"
program dpkg-query </dev/null
program apt-get <<<"touch '$work/asked'"
expect 1 'packages are missing: build-essential' 'qemu-system-x86 (1:8 or later)' 'as root, run tests/setup.sh once' -- as_nobody "$repo/tests/setup.sh"
expect 1 'packages are missing' 'the machine could not be set up' -- as_nobody "$repo/tests/demo.sh"
not 'apt-get was asked without a right to' test -e "$work/asked"
expect 1 'nobody cannot write to' 'set XDG_CACHE_HOME' -- as_nobody "$repo/tests/support/vm/build-guest.sh"
mkdir -p "$repo/build/release"
small_disk 1m "$repo/build/release"
expect 1 'nobody cannot write to' 'build/release' -- as_nobody bash -c ". '$repo/tests/setup.sh' && railhead_build"
umount "$repo/build/release"

# ---- Debian 12's QEMU -----------------------------------------------------------------------
program dpkg-query <<'END'
if [ "$3" = '${Version}' ]; then echo 1:7.2+dfsg-7; else printf '%s installed\n' "${@:3}"; fi
END
expect 1 'packages are missing:  qemu-system-x86 (1:8 or later)' -- as_nobody "$repo/tests/setup.sh"
small_disk 1m /etc/apt/sources.list.d
program apt-get <<'END'
case $* in
    indextargets*) echo 'http://mirror.test/debian bookworm Debian' ;;
    *update) echo 'W: Failed to fetch http://mirror.test/debian/dists/bookworm-backports/InRelease  Connection timed out' ;;
esac
END
expect 1 'does not give bookworm-backports' 'a mirror does not answer (http://mirror.test/' -- "$repo/tests/setup.sh"
not 'a source that does not answer is left' test -e /etc/apt/sources.list.d/railhead-backports.list
program qemu-system-x86_64 <<<'echo QEMU emulator version 7.2.15'
expect 125 '8.0 or later' 'there is 7.x' 'run tests/setup.sh' -- "$repo/tests/support/vm/run-guest.sh" "$here/bad_machine.sh"
rm "$work/bin/qemu-system-x86_64"

# ---- a mirror that does not answer ----------------------------------------------------------
python3 -c 'import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
taken = []
while True:
    taken.append(listener.accept())' >"$work/port" &
silent=$!
while [ ! -s "$work/port" ] && kill -0 $silent; do sleep 0.1; done
mirror=http://127.0.0.1:$(cat "$work/port")/debian
mkdir -p "$work"/apt/{etc/apt/{apt.conf.d,preferences.d,sources.list.d},lists/partial,cache/archives/partial,dpkg}
: >"$work/apt/dpkg/status"
echo "deb [trusted=yes] $mirror bookworm main" >"$work/apt/etc/apt/sources.list"
cat >"$work/apt.conf" <<END
Dir "$work/apt";
Dir::State "$work/apt";
Dir::Cache "$work/apt/cache";
Dir::State::status "$work/apt/dpkg/status";
APT::Sandbox::User "root";
END
export RAILHEAD_APT_TIMEOUT=1
program dpkg-query </dev/null
program apt-get <<END
export APT_CONFIG=$work/apt.conf
[ "\$1" != indextargets ] || { printf '$mirror %s Debian\n' Debian bookworm && exit; }
exec /usr/bin/apt-get "\$@"
END
expect 1 "a mirror does not answer ($mirror" 'failed: apt-get install' -- "$repo/tests/setup.sh"
expect 1 "a mirror does not answer ($mirror" 'no guest was made: prepare_apt failed' -- env XDG_CACHE_HOME="$work/cache" "$repo/tests/support/vm/build-guest.sh"
not 'half a guest is left' compgen -G "$work/cache/railhead/guest/.build-*"
expect 1 "a mirror does not answer ($mirror" 'sysroot.sh: failed: apt-get' -- env XDG_CACHE_HOME="$work/cache" "$repo/manifests/package/sysroot.sh"
not 'half a folder of packages is left' compgen -G "$work/cache/railhead/sysroot/.build-*"

# ---- full disks -----------------------------------------------------------------------------
program apt-get <<END
if [[ "\$*" = *--assume-no* ]]; then echo 'After this operation, 9,999 TB of additional disk space will be used.'; else touch '$work/installed'; fi
END
expect 1 'and the disk of /usr has' 'make room' -- in_setup railhead_apt install jq
not 'packages were installed without room for them' test -e "$work/installed"

# In every unit that apt has: few packages may need little.
for size in '0 B' '12 B' '8,438 kB' '12.3 MB' '1.5 kB/12.3 MB'; do
    program apt-get <<END
if [[ "\$*" = *--assume-no* ]]; then printf '%s\n' 'Need to get $size of archives.' 'After this operation, ${size%%/*} of additional disk space will be used.'; else touch '$work/installed'; fi
END
    rm -f "$work/installed"
    expect 0 -- in_setup railhead_apt install jq
    not "packages of $size were not installed" test ! -e "$work/installed"
done

mkdir "$work/small"
small_disk 8m "$work/small"
program apt-get <<END
[ "\$1" != indextargets ] || { echo $mirror Debian Debian && exit; }
dd if=/dev/zero of='$work/small/lists' bs=1M
END
expect 1 "the disk of $work/small" 'no guest was made: prepare_apt failed' -- env XDG_CACHE_HOME="$work/small" "$repo/tests/support/vm/build-guest.sh"
not 'half a guest is left' compgen -G "$work/small/railhead/guest/.build-*"
program qemu-system-x86_64 <<<'echo QEMU emulator version 10.0.0'
program dpkg-query <<'END'
if [ "$3" = '${Version}' ]; then echo 1:10.0; else printf '%s installed\n' "${@:3}"; fi
END
program cmake </dev/null
program guest <<<"echo '$work'"
mount --bind "$work/bin/guest" "$repo/tests/support/vm/build-guest.sh"
expect 125 "the disk of $work/small" 'no folder that can be written' -- "$repo/tests/support/vm/run-guest.sh" -o "$work/small/job" "$here/bad_machine.sh"
small_disk 1m "$repo/build/release"
touch "$repo/build/release/build.ninja"
expect 1 "the disk of $work/small" 'the package could not be built' -- env TMPDIR="$work/small" "$repo/tests/demo.sh"

# The demo is stopped while its nodes run.
program pack </dev/null
program pair <<<"echo \$\$ >'$work/pair' && exec sleep 1000"
mount --bind "$work/bin/pack" "$repo/tests/system/package/pack.sh"
mount --bind "$work/bin/pair" "$repo/tests/support/vm/run-pair.sh"
mkdir "$work/results"
TMPDIR=$work/results "$repo/tests/demo.sh" >"$work/said" 2>&1 &
demo=$!
while [ ! -s "$work/pair" ] && kill -0 $demo; do sleep 0.1; done
kill $demo
wait $demo
not 'the nodes of a stopped demo run on' kill -0 "$(cat "$work/pair")"
not 'a stopped demo leaves files' compgen -G "$work/results/*"
rm "$work/bin/cmake"
umount "$repo/build/release"

small_disk 1m "$repo/build/release"
expect 1 "the disk of $repo/build/release is full" 'cmake --preset release failed' -- in_setup railhead_build help
mount -o remount,size=200m "$repo/build/release"
expect 0 -- in_setup railhead_build help
expect 0 railheadd -- grep railheadd "$repo/build/release/railhead-build.log"
exit $failed
