#!/bin/bash
# hashes.sh - no std::hash in our sources: its values differ between two programs, and ours share what is named by
# a hash. netns/base/fnv.h has one that is fixed.
# exit status: 0, or 1 with the places
set -euo pipefail
cd "$(dirname "$0")/../.."
pattern='std::hash\b|hash_value\(|_Hash_bytes'
grep -qE "$pattern" <<<'std::hash<std::string>{}(container)' || { echo "hashes.sh: the planted one was not found" >&2; exit 1; }
mapfile -t files < <(find netns cni ipam deviceplugin -name '*.h' -o -name '*.cc')
[ ${#files[@]} -gt 100 ] || { echo "hashes.sh: only ${#files[@]} files found" >&2; exit 1; }
# A comment may name it.
if grep -nE "^[^/]*($pattern)" "${files[@]}" >&2; then
    echo "use netns/base/fnv.h" >&2
    exit 1
fi
echo "no std::hash in ${#files[@]} files"
