#!/bin/bash
# presets.sh - every preset of CMakePresets.json configures.
#
# Builds for ThreadSanitizer are made by hand. Without this check, the next developer who needs one would find
# what breaks its configuration.
# usage: presets.sh
# exit status: 0, or 1 with what CMake said
set -euo pipefail
cd "$(dirname "$0")/../.."
trees=$(mktemp -d)
trap 'rm -rf "$trees"' EXIT
presets=$(python3 -c 'import json
print(*(p["name"] for p in json.load(open("CMakePresets.json"))["configurePresets"] if not p.get("hidden")))')
for preset in $presets; do
    cmake --preset "$preset" -B "$trees/$preset" >"$trees/log" 2>&1 && continue
    echo "cmake --preset $preset fails:" >&2
    grep -v '^-- ' "$trees/log" | head -40 >&2
    exit 1
done
