#!/bin/bash
# binaries.sh BUILD - what is released of a build tree has all that the compiler and the linker can do for it:
# relocations that are read-only before main(), an image at random addresses, no memory both writable and
# executable, no search paths of libraries, stack protector, _FORTIFY_SOURCE and the checks of libstdc++. All but
# railhead-nvml, which loads NVIDIA's library, are static. What a container runtime starts for each pod has no streams of
# the C++ library: with them come all of its locales, which each process would load and relocate.
# And the check notices what has not.
# exit status: 0 all held
set -euo pipefail
build=$1
IFS=';' read -ra programs < <(sed -n 's/^RAILHEAD_PROGRAMS:INTERNAL=//p' "$build/CMakeCache.txt")
[ ${#programs[@]} -gt 0 ] || { echo "binaries.sh: $build names no programs" >&2; exit 1; }
failed=0

# wrong_with PROGRAM: what is missing, a line each.
wrong_with() {
    local header segments dynamic
    header=$(readelf -Wh "$1")
    segments=$(readelf -Wl "$1")
    dynamic=$(readelf -Wd "$1")
    grep -q 'Type: *DYN' <<<"$header" || echo 'is no position independent executable'
    grep -q GNU_RELRO <<<"$segments" || echo 'has no RELRO'
    grep -Eq 'BIND_NOW|FLAGS_1.* NOW' <<<"$dynamic" || echo 'is bound lazily: RELRO is not full'
    grep -q GNU_STACK <<<"$segments" || echo 'does not say what its stack is: it is executable'
    ! grep 'GNU_STACK.*E' <<<"$segments" >/dev/null || echo 'has an executable stack'
    ! grep -E '^ *LOAD.*RWE' <<<"$segments" >/dev/null || echo 'has memory that is writable and executable'
    ! grep -q TEXTREL <<<"$dynamic" || echo 'has relocations in its text'
    ! grep -Eq 'RPATH|RUNPATH' <<<"$dynamic" || echo 'looks for libraries where its builder had them'
    # What they print, in a static program; what they call, in another.
    grep -aqE 'stack smashing detected|__stack_chk_fail' "$1" || echo 'has no stack protector'
    [ -n "$(grep -aoE 'buffer overflow detected|__[a-z]+_chk' "$1" | grep -v __stack_chk || true)" ] ||
        echo 'has no _FORTIFY_SOURCE'
}

# needed PROGRAM: the shared libraries and the loader that it asks for.
needed() {
    readelf -Wd "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'
    readelf -Wl "$1" | sed -n 's/.*program interpreter: \(.*\)\]$/\1/p'
}

has_streams() { grep -aqF 'locale::facet::_S_create_c_locale' "$1"; } # PROGRAM: a message of theirs

# unhardened COMMANDS: objects of Railhead's that are compiled without one of the flags, with it.
unhardened() {
    python3 - "$1" <<'EOF'
import json, re, sys
wanted = ["-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=2", "-D_GLIBCXX_ASSERTIONS"]
seen = 0
for entry in json.load(open(sys.argv[1])):
    # Sources may be joined: an object belongs to its part all the same. (What protoc wrote is not ours.)
    source = re.search(r" -o (\S+)", entry["command"]).group(1)
    if not re.match(r"(netns|cni|ipam|deviceplugin)/(\w+/)*CMakeFiles/", source) or ".pb." in source or "_proto.dir" in source:
        continue
    seen += 1
    words = entry["command"].split()
    missing = [flag for flag in wanted if flag not in words]
    if not re.search(r" -O([s123]|fast) ", entry["command"]):
        missing.append("-O, without which _FORTIFY_SOURCE does nothing")
    if "-fPIC" not in words and "-fPIE" not in words:
        missing.append("-fPIC")
    if missing:
        print(source + ": " + ", ".join(missing))
if seen < 30:
    print("only %d objects were found" % seen)
EOF
}

for program in "${programs[@]}"; do
    while read -r wrong; do
        echo "binaries.sh: $program $wrong" >&2
        failed=1
    done < <(wrong_with "$build/bin/$program")
    needs=$(needed "$build/bin/$program" | tr '\n' ' ')
    case $program:$needs in
        railhead-nvml:'libc.so.6 /'*) ;;
        railhead-nvml:* | *:?*) echo "binaries.sh: $program needs: $needs" >&2; failed=1 ;;
    esac
done
for program in railhead railhead-ipam; do
    ! has_streams "$build/bin/$program" || { echo "binaries.sh: $program uses streams of the C++ library" >&2; failed=1; }
done
has_streams "$build/bin/railctl" || { echo "binaries.sh: that a program uses streams is not noticed" >&2; failed=1; }
while read -r wrong; do
    echo "binaries.sh: $wrong" >&2
    failed=1
done < <(unhardened "$build/compile_commands.json")

# A program that has none of it.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo 'int main(void) { return 0; }' >"$work/bare.c"
cc -no-pie -fno-stack-protector -U_FORTIFY_SOURCE -O1 -Wl,-z,norelro,-z,lazy,-z,execstack,-rpath,/nowhere \
    -o "$work/bare" "$work/bare.c" 2>/dev/null
noticed=$(wrong_with "$work/bare")
for what in 'position independent' 'no RELRO' 'bound lazily' 'executable stack' 'looks for libraries' 'stack protector' \
    '_FORTIFY_SOURCE'; do
    grep -q "$what" <<<"$noticed" || { echo "binaries.sh: '$what' of a bare program is not noticed" >&2; failed=1; }
done
[ "$(needed "$work/bare" | wc -l)" = 2 ] || { echo "binaries.sh: that a program is dynamic is not noticed" >&2; failed=1; }
sed 's/-D_FORTIFY_SOURCE=2//; s/-fstack-protector-strong//' "$build/compile_commands.json" >"$work/commands.json"
noticed=$(unhardened "$work/commands.json")
for flag in -D_FORTIFY_SOURCE=2 -fstack-protector-strong; do
    grep -q -- "$flag" <<<"$noticed" || { echo "binaries.sh: a build without $flag is not noticed" >&2; failed=1; }
done
exit $failed
