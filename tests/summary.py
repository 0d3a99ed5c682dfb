#!/usr/bin/env python3
"""summary.py BUILD STEPS [--all]: passes ctest's output on, and puts before its summary what the run left out, and where its time went.

A test that GTEST_SKIP ends is one of many in a program that ctest calls passed. ctest's log of the run has what the
program said of it. Without --all, the tests that tests/run.sh leaves out by label are skipped, too.
The file STEPS has the steps of tests/run.sh before the tests: a line each of its name and its seconds, with a tab between.
"""
import pathlib
import re
import subprocess
import sys
import time

# "FILE:LINE: Skipped", the reason, and which test it was.
SKIPPED = re.compile(r"^\S+:\d+: Skipped\n((?:.*\n)*?)\[  SKIPPED \] (\S+) \(", re.MULTILINE)
# ctest's line of a test that has ended.
ENDED = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*.* ([\d.]+) sec$")
LONGEST = 10


def skipped_tests(log):
    """(test, reason) of each test that said in ctest's log that it was skipped, once each."""
    found = {}
    for reason, test in SKIPPED.findall(log):
        found[test] = " ".join(reason.split()) or "no reason given"
    return sorted(found.items())


def long_tests(build):
    """The names of the tests that only `tests/run.sh --all` runs."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-N", "-L", "long"], capture_output=True, text=True, check=True)
    return re.findall(r"^ +Test +#\d+: (\S+)$", listed.stdout, re.MULTILINE)


def left_out(build, all_run):
    logs = pathlib.Path(build) / "Testing/Temporary"
    log = logs / "LastTest.log.tmp"  # its name while ctest runs
    if not log.exists():
        log = logs / "LastTest.log"
    skipped = skipped_tests(log.read_text(errors="replace"))
    if not all_run:
        skipped += [(test, "long: tests/run.sh --all runs it") for test in long_tests(build)]
    return "".join(f"skipped: {test}: {reason}\n" for test, reason in skipped) or "skipped: none\n"


def table(heading, rows):
    return f"\n{heading}\n" + "".join(f"{seconds:8.0f}  {what}\n" for what, seconds in rows)


def times(steps, tests):
    """Where the time went. `steps`, `tests`: (name, seconds); tests run beside each other, so theirs add up to more."""
    layers = {}
    for test, seconds in tests:
        layer = test.split(".")[0]
        count, total = layers.get(layer, (0, 0.0))
        layers[layer] = (count + 1, total + seconds)
    rows = sorted(((f"{layer} ({count} tests)", total) for layer, (count, total) in layers.items()), key=lambda row: -row[1])
    longest = sorted(tests, key=lambda row: -row[1])[:LONGEST]
    return (table("seconds  step", steps) + table("seconds  layer, the sum of its tests", rows) +
            table(f"seconds  the {len(longest)} longest tests", longest))


def main():
    build, steps, all_run = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:] == ["--all"]
    tests, begun = [], time.monotonic()
    for line in sys.stdin:
        if ended := ENDED.match(line):
            tests.append((ended[1], float(ended[2])))
        if re.match(r"\d+% tests passed", line):
            rows = [line.rsplit("\t", 1) for line in steps.read_text().splitlines()] if steps.exists() else []
            rows = [(name, float(seconds)) for name, seconds in rows] + [("running the tests", time.monotonic() - begun)]
            sys.stdout.write(left_out(build, all_run) + times(rows, tests) + "\n")
        sys.stdout.write(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
