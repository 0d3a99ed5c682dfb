#!/usr/bin/env python3
"""by_source.py BUILD OUT: writes OUT/compile_commands.json of BUILD's, with a command for each source.

A tree that joins sources (CMAKE_UNITY_BUILD) has commands for the joined ones only: each of those is repeated for every
source that it includes. Precompiled headers are left out: a source has to include what it uses.
"""
import json
import pathlib
import re
import sys

PRECOMPILED = re.compile(r" -Xclang -include-pch -Xclang \S+ -Xclang -include -Xclang \S+")

build, out = map(pathlib.Path, sys.argv[1:])
commands = []
for command in json.loads((build / "compile_commands.json").read_text()):
    command["command"] = PRECOMPILED.sub("", command["command"])
    joined = pathlib.Path(command["file"])
    if not re.fullmatch(r"unity_\d+_cxx\.cxx", joined.name):
        commands.append(command)
        continue
    for source in re.findall(r'^#include "(/.*)"$', joined.read_text(), re.MULTILINE):
        commands.append(command | {"file": source, "command": command["command"].replace(str(joined), source)})
(out / "compile_commands.json").write_text(json.dumps(commands, indent=1))
