#!/bin/bash
# programs.sh - no source of what is released runs a program, but where delegated plugins are run and where a program
# of ours is asked (its version, or where a GPU is); none makes a shell of it. And the check notices one that does.
# exit status: 0 all held
set -euo pipefail
cd "$(dirname "$0")/../../.."
allowed='^(cni/protocol/delegate\.cc|deviceplugin/support/program/program\.cc):'

# runs FILE...: "FILE:LINE:TEXT" of each call that runs a program. Comments and strings aside.
runs() {
    grep -HnE '(^|[^A-Za-z0-9_.>])(system|popen|wordexp|exec[lv]p?e?|execvpe|execveat|fexecve|posix_spawnp?)[[:space:]]*\(|SYS_exec(ve|veat)' "$@" |
        grep -vE '^[^:]*:[0-9]*:[[:space:]]*//' || true
}

mapfile -t sources < <(find netns cni ipam deviceplugin -name '*.cc' -o -name '*.h' | sort)
[ "${#sources[@]}" -gt 200 ] || { echo "programs.sh: only ${#sources[@]} sources were found" >&2; exit 1; }
found=$(runs "${sources[@]}")
bad=$(grep -vE "$allowed" <<<"$found" || true)
[ -z "$bad" ] || { printf 'programs.sh: runs a program:\n%s\n' "$bad" >&2; exit 1; }
# A path that was found and a list of arguments: no shell, no search in PATH.
if [ "$(grep -c 'posix_spawn(&pid, path.c_str()' <<<"$found")" != 2 ] || [ "$(wc -l <<<"$found")" != 2 ]; then
    printf 'programs.sh: programs are run otherwise than by their paths:\n%s\n' "$found" >&2
    exit 1
fi

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
for call in 'std::system("x");' 'FILE* f = popen(c, "r");' '::execve(a, b, c);' '  execlp("sh", "sh");' 'posix_spawnp(&p, "x");' \
    'syscall(SYS_execve, a);'; do
    echo "$call" >"$planted/x.cc"
    [ -n "$(runs "$planted/x.cc")" ] || { echo "programs.sh: not noticed: $call" >&2; exit 1; }
done
