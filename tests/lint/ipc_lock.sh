#!/bin/bash
# ipc_lock.sh - every file that advises IPC_LOCK says for which containers it has no effect: those that do not run as root.
#
# usage: ipc_lock.sh
# exit status: 0, or 1 with the files that do not say it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

says_it() { grep -Eq 'no effect|不起作用|无效' "$1"; }

mapfile -t advising < <(git grep -l --untracked IPC_LOCK -- README.md docs manifests deviceplugin)
((${#advising[@]} > 0)) || { echo "ipc_lock.sh: it does not find what it looks for" >&2 && exit 1; }
silent=0
for file in "${advising[@]}"; do
    says_it "$file" || { echo "$file: IPC_LOCK has no effect for containers that do not run as root" && silent=1; }
done
echo "${#advising[@]} files"
exit "$silent"
