#!/bin/bash
# commands.sh RAILCTL - each `railctl ...` in README.md and docs/ is a command of that program, with
# options that it has. Looked at are code spans that begin with railctl, and lines of code blocks, also where kubectl
# or ssh runs it.
set -euo pipefail
railctl=$1
cd "$(dirname "$0")/../.."

# commands FILE...: "FILE:LINE<tab>WORDS", without prompts and what follows the command.
commands() {
    awk '
        FNR == 1 { fenced = 0 }
        /^ *```/ { fenced = !fenced; next }
        fenced || /^    / {
            line = $0
            sub(/^ *([^ ]*[$#] )?/, "", line)
            sub(/^(kubectl|ssh) .*[ \/]railctl /, "railctl ", line)
            if (line ~ /^railctl /) print FILENAME ":" FNR "\t" line
            next
        }
        {
            rest = $0
            while (match(rest, /`railctl [^`]*`/)) {
                print FILENAME ":" FNR "\t" substr(rest, RSTART + 1, RLENGTH - 2)
                rest = substr(rest, RSTART + RLENGTH)
            }
        }' "$@" | sed -E 's/ (\|\|?|&&|>|#) .*//; s/   .*//'
}

declare -A helps
help_of() { # SUBCOMMAND...: into $help
    local key="railctl $*"
    [ -n "${helps[$key]:-}" ] || helps[$key]=$("$railctl" "$@" --help 2>&1) || true
    help=${helps[$key]}
}
# is_subcommand WORD SUBCOMMAND...: WORD is one of those that the help of the others lists, or an alias: "NAME, ALIAS".
is_subcommand() {
    local word=$1
    shift
    [[ $word =~ ^[a-z-]+$ ]] || return
    help_of "$@"
    sed -e '1,/^Options:/d' -e '/^Examples:/,$d' <<<"$help" | grep -E "^  ([a-z-]+, )*$word(,| |\$)" >/dev/null
}
has_subcommands() { help_of "$@" && grep -q '^Usage: .*SUBCOMMAND' <<<"$help"; }
# runs_alone SUBCOMMAND...: does something without one of its subcommands, too.
runs_alone() { help_of "$@" && grep -q '^Usage: .*\[SUBCOMMAND\]' <<<"$help"; }

checked=0 wrong=0
complain() { echo "$where: $*" >&2; wrong=$((wrong + 1)); }
# check_one WORD...: of one command line, after railctl.
check_one() {
    [ "$1" != ... ] || return 0  # any command
    local path=() word option
    while [ $# -gt 0 ] && has_subcommands "${path[@]}"; do
        if ! is_subcommand "$1" "${path[@]}"; then
            runs_alone "${path[@]}" && break
            complain "railctl ${path[*]} has no $1"
            return
        fi
        path+=("$1")
        shift
    done
    help_of "${path[@]}"
    for word; do
        for option in $(grep -oE '^\[?--[a-z-]+' <<<"$word" | tr -d '['); do
            grep -qE -- "$option\b" <<<"$help" || complain "railctl ${path[*]} has no $option"
        done
    done
    checked=$((checked + 1))
}

mapfile -t pages < <(find docs -name '*.md' | sort)
while IFS=$'\t' read -r where text; do
    read -ra words <<<"$text"
    words=("${words[@]:1}")
    # "show|verify": each of them.
    for i in "${!words[@]}"; do
        [[ ${words[i]} =~ ^[a-z]+(\|[a-z]+)+$ ]] || continue
        for choice in ${words[i]//|/ }; do check_one "${words[@]:0:i}" "$choice" "${words[@]:i+1}"; done
        continue 2
    done
    check_one "${words[@]}"
done < <(commands README.md CONTRIBUTING.md "${pages[@]}")
[ "$checked" -ge 40 ] || { echo "commands.sh: found only $checked commands: are they written otherwise now?" >&2; exit 1; }
[ "$wrong" = 0 ] || exit 1
echo "$checked commands are those of railctl"
