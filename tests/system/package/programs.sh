#!/bin/bash
# programs.sh - the target "programs" builds every file of a build tree that the package installs, and nobody has to list one.
#
# usage: programs.sh [BUILD]   (build/release)
# Compares the installation rules of CMake with what ninja builds. Then it plants a program with a rule of its own,
# which this has to find, and one that goes the usual way. Nothing is built.
# exit status: 0 all held
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
build=$(realpath "${1:-$repo/build/release}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "programs.sh: $*" >&2; exit 1; }

# installed BUILD: the files of the tree that its rules install, below it.
installed() {
    find "$1" -name cmake_install.cmake -exec awk '/file\(INSTALL/ { on = 1 } on { print } /\)/ { on = 0 }' {} + |
        grep -oE "\"$1/[^\"]+\"" | sed "s#^\"$1/##; s#\"\$##" | sort -u
}
# forgotten BUILD: those that are not built with the target.
forgotten() { comm -23 <(installed "$1") <(ninja -C "$1" -t graph programs | sed -n 's/.*label="\([^" ]*\)".*/\1/p' | sort -u); }

count=$(installed "$build" | wc -l)
[ "$count" -ge 5 ] || fail "only $count installed programs were found"
left=$(forgotten "$build")
[ -z "$left" ] || fail "installed, but not built by the target programs: $left"

cat >"$work/planted.cmake" <<'END'
file(WRITE ${CMAKE_BINARY_DIR}/planted.cc "int main() {}")
cmake_language(DEFER CALL add_executable planted-usual ${CMAKE_BINARY_DIR}/planted.cc)
cmake_language(DEFER CALL add_executable planted-beside ${CMAKE_BINARY_DIR}/planted.cc)
cmake_language(DEFER CALL install TARGETS planted-beside RUNTIME DESTINATION bin)
cmake_language(DEFER CALL railhead_install bin planted-usual)
END
cmake --preset release -S "$repo" -B "$work/build" -DRAILHEAD_BUILD_TESTS=OFF -DCMAKE_PROJECT_railhead_INCLUDE="$work/planted.cmake" >"$work/log" 2>&1 ||
    fail "$(tail -n 20 "$work/log")"
left=$(forgotten "$work/build")
[ "$left" = bin/planted-beside ] || fail "a planted program that nobody lists is not found, but: '$left'"
grep '^RAILHEAD_PROGRAMS:.*;planted-usual$' "$work/build/CMakeCache.txt" >/dev/null || fail "the images do not know of a program that the package has"
echo "the target builds all $count installed programs, and a planted one was found"
