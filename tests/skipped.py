#!/usr/bin/env python3
"""skipped.py BUILD [--all]: passes ctest's output on, and puts before its summary which tests were skipped and why.

A test that GTEST_SKIP ends is one of many in a program that ctest calls passed. ctest's log of the run has what the
program said of it. Without --all, the tests that tests/run.sh leaves out by label are skipped, too.
"""
import pathlib
import re
import subprocess
import sys

# "FILE:LINE: Skipped", the reason, and which test it was.
SKIPPED = re.compile(r"^\S+:\d+: Skipped\n((?:.*\n)*?)\[  SKIPPED \] (\S+) \(", re.MULTILINE)


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


def summary(build, all_run):
    logs = pathlib.Path(build) / "Testing/Temporary"
    log = logs / "LastTest.log.tmp"  # its name while ctest runs
    if not log.exists():
        log = logs / "LastTest.log"
    skipped = skipped_tests(log.read_text(errors="replace"))
    if not all_run:
        skipped += [(test, "long: tests/run.sh --all runs it") for test in long_tests(build)]
    return "".join(f"skipped: {test}: {reason}\n" for test, reason in skipped) or "skipped: none\n"


def main():
    build, all_run = sys.argv[1], sys.argv[2:] == ["--all"]
    for line in sys.stdin:
        if re.match(r"\d+% tests passed", line):
            sys.stdout.write(summary(build, all_run) + "\n")
        sys.stdout.write(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
