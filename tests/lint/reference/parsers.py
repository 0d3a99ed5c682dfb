"""What the parsers of the programs know: asked of them, not read from their sources.

A configuration with one planted fault is given to the program, whose error tells the known keys of an object
("known here: ..."), the type that it wanted, a range, the words of a choice, or that a key is required.
"""

import copy
import json
import os
import pathlib
import re
import subprocess

NO_KEY = "qqqqqqqqqqqqqqqqqqqqqqqq"  # near no other
FAULT = re.compile(r"^[^:]*: (/\S*): (.*)$", re.S)
REQUIRED = re.compile(r"is required|is missing|must name at least")

FABRIC = {"version": 1, "rails": [{"name": "rail0", "pf": 0, "subnet": "10.0.0.0/16"}]}
ETCD = {"type": "etcd", "etcd": {"endpoints": ["http://h:1"]}}
CNI = {"cniVersion": "1.0.0", "name": "net", "type": "railhead"}
LINKS = CNI | {"ipam": {"type": "railhead-ipam", "links": [{"ifname": "net1", "subnet": "10.0.0.0/24"}]}}
IPAM = CNI | {"ipam": {"type": "railhead-ipam", "routes": [{"dst": "10.0.0.0/8"}],
                       "ranges": [[{"subnet": "10.0.0.0/24"}]], "ipRanges": [{"range": "10.0.0.0/24"}],
                       "addresses": [{"address": "10.0.0.1/24"}]}}
TOPOLOGY = {"paths": [{"nic": "0000:01:00.0", "accelerator": "0000:02:00.0", "path": "PIX"}]}

# page, section, program, configuration, ways to the object whose keys the section lists
SECTIONS = [
    ("fabric.md", "The file", "fabric", FABRIC, [[]]),
    ("fabric.md", "`rails[]`", "fabric", FABRIC, [["rails", 0]]),
    ("fabric.md", "`addresses`", "fabric", FABRIC, [["addresses"]]),
    ("fabric.md", "`addresses.store`", "fabric", FABRIC, [["addresses", "store"]]),
    ("fabric.md", "`addresses.store.etcd`", "fabric", FABRIC | {"addresses": {"store": ETCD}},
     [["addresses", "store", "etcd"]]),
    ("fabric.md", "`addresses.store.kubernetes`", "fabric", FABRIC | {"addresses": {"store": {"type": "kubernetes"}}},
     [["addresses", "store", "kubernetes"]]),
    ("fabric.md", "`handoff`", "fabric", FABRIC, [["handoff"]]),
    ("fabric.md", "`handoff.nccl`", "fabric", FABRIC, [["handoff", "nccl"]]),
    ("fabric.md", "`pools[]`", "fabric", FABRIC | {"pools": [{"resource": "a/b"}]}, [["pools", 0]]),
    ("fabric.md", "`health`", "fabric", FABRIC, [["health"]]),
    ("fabric.md", "`health.RULE`", "fabric", FABRIC, [["health", "aer"], ["health", "devlink"]]),
    ("fabric.md", "`health.RULE.counters.NAME`", "fabric", FABRIC, [["health", "aer", "counters", "aer_dev_fatal"]]),
    ("fabric.md", "`connectivity`", "fabric", FABRIC, [["connectivity"]]),
    ("fabric.md", "`provision`", "fabric", FABRIC, [["provision"]]),
    ("fabric.md", "`provision.rails.RAIL`", "fabric", FABRIC, [["provision", "rails", "rail0"]]),
    ("fabric.md", "`isolation`", "fabric", FABRIC, [["isolation"]]),
    ("fabric.md", "`isolation.taint`", "fabric", FABRIC, [["isolation", "taint"]]),
    ("fabric.md", "`isolation.kubernetes`", "fabric", FABRIC, [["isolation", "kubernetes"]]),
    ("fabric.md", "topology.json", "topology", {}, [[]]),
    ("fabric.md", "`paths[]` of topology.json", "topology", TOPOLOGY, [["paths", 0]]),
    ("fabric.md", "`accelerators` of topology.json", "topology", {}, [["accelerators"]]),
    ("cni.md", "`railhead`", "railhead", CNI, [[]]),
    ("cni.md", "`railhead-ipam`", "railhead-ipam", IPAM, [["ipam"]]),
    ("cni.md", "`ipam.links[]`", "railhead-ipam", LINKS, [["ipam", "links", 0]]),
    ("cni.md", "`ipam.routes[]`", "railhead-ipam", IPAM, [["ipam", "routes", 0]]),
    ("cni.md", "`ipam.ranges[][]`", "railhead-ipam", IPAM, [["ipam", "ranges", 0, 0]]),
    ("cni.md", "`ipam.ipRanges[]`", "railhead-ipam", IPAM, [["ipam", "ipRanges", 0]]),
    ("cni.md", "`ipam.addresses[]`", "railhead-ipam", IPAM, [["ipam", "addresses", 0]]),
    ("cni.md", "`ipam.dns`", "railhead-ipam", IPAM, [["ipam", "dns"]]),
]


class Programs:
    """Runs them below a root of its own, so that they see nothing of this machine."""

    def __init__(self, binaries, root):
        self.binaries, self.root = pathlib.Path(binaries), pathlib.Path(root)
        (self.root / "etc/railhead").mkdir(parents=True, exist_ok=True)
        self.environment = {"PATH": os.environ["PATH"], "RAILHEAD_ROOT": str(self.root), "CNI_COMMAND": "ADD",
                            "CNI_CONTAINERID": "c", "CNI_IFNAME": "net1", "CNI_NETNS": "/run/netns/none",
                            "CNI_PATH": "/nowhere"}

    def run(self, *command, text=""):
        return subprocess.run([self.binaries / command[0], *command[1:]], input=text, env=self.environment,
                              capture_output=True, text=True, timeout=60, check=False)

    def schema(self, of):
        return json.loads(self.run("railctl", "config", "schema", of).stdout)

    def errors(self, program, configuration):
        """[(pointer, message, hint)] of what the program finds wrong with it."""
        text = json.dumps(configuration)
        if program == "fabric":
            (self.root / "fabric.json").write_text(text)
            told = json.loads(self.run("railctl", "config", "check", "/fabric.json", "-o", "json").stdout)
            errors = [(error["message"], error.get("hint", "")) for error in told.get("errors", [])]
        elif program == "topology":
            (self.root / "etc/railhead/topology.json").write_text(text)
            message, _, hint = self.run("railctl", "topo").stderr.removeprefix("railctl: ").partition("\n")
            errors = [(message, hint.strip())]
        else:
            told = json.loads(self.run(program, text=text).stdout)
            errors = [(told["msg"], told.get("details", ""))]
        # A part that is read by itself has a pointer of its own behind the part's.
        errors = [(re.sub(r": (/\S+): /", r": \1/", message), hint) for message, hint in errors]
        return [(*fault.groups(), hint) for message, hint in errors if (fault := FAULT.match(message))]


def planted(configuration, way, key, value):
    """A copy with `key` set in the object at `way`, and a key that nobody knows beside it, so that it
    is refused in any case."""
    copied = copy.deepcopy(configuration)
    place = copied
    for step, following in zip(way, [*way[1:], ""]):
        empty = [] if isinstance(following, int) else {}
        if isinstance(step, int):
            place.extend([empty] * (step + 1 - len(place)))
        else:
            place.setdefault(step, empty)
        place = place[step]
    place[key] = value
    place[NO_KEY] = 1
    return copied


class Key:
    """What its parser says of one key."""

    def __init__(self, wanted, span, words, required):
        self.wanted, self.span, self.words, self.required = wanted, span, words, required


def ask(programs, program, configuration, way, key):
    pointer = "".join(f"/{step}" for step in [*way, key])

    def said(value):
        faults = programs.errors(program, planted(configuration, way, key, value))
        return next(((message, hint) for at, message, hint in faults if at == pointer), ("", ""))

    wanted = re.match(r"is not (.*) but ", said(1.5)[0])
    wanted = wanted.group(1) if wanted else ""
    span = re.search(r"out of range (-?\d+)\.\.(-?\d+)$", said(-10**15)[0]) if wanted == "an integer" else None
    message, hint = said(NO_KEY) if wanted == "a string" else ("", "")
    words = set(re.findall(r"[\w.]+", hint)) - {"or"} if message.endswith("is not known") else set()
    required = bool(REQUIRED.search(said(None)[0]))
    return Key(wanted, tuple(map(int, span.groups())) if span else None, words, required)


def known_keys(programs, program, configuration, way):
    pointer = "".join(f"/{step}" for step in [*way, NO_KEY])
    for at, _, hint in programs.errors(program, planted(configuration, way, NO_KEY, 1)):
        if at == pointer and hint.startswith("known here: "):
            return hint.removeprefix("known here: ").split(", ")
    raise RuntimeError(f"{program} does not say which keys it knows at /{'/'.join(map(str, way))}")


def collect(programs):
    """{(page, section): {key: Key}}"""
    facts = {}
    for page, section, program, configuration, ways in SECTIONS:
        keys = facts.setdefault((page, section), {})
        for way in ways:
            for key in known_keys(programs, program, configuration, way):
                if key not in keys:
                    keys[key] = ask(programs, program, configuration, way, key)
    return facts
