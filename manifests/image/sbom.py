"""The bill of materials of a release build: SPDX 2.3, JSON.

What is in the programs is asked of the build itself: the archives and headers that ninja's targets were made
from, and of dpkg, whose packages they are. So a library that is added is in it without being named here.
"""
import json
import re
import subprocess
import uuid


class Failure(Exception):
    """What the caller can do something about."""


def output(*command, accept=(0,)):
    run = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode not in accept:
        raise Failure(f"{' '.join(command[:4])}: {run.stderr.strip()}")
    return run.stdout


def archives(build, targets):
    inputs = output("ninja", "-C", str(build), "-t", "inputs", *targets).splitlines()
    found = {line for line in inputs if re.match(r"/usr/lib/.*\.(a|o)$", line)}
    # Those that the compiler's driver adds are named in no target: the C library and the compiler's own.
    for name in ("libc.a", "libstdc++.a", "libgcc.a"):
        found.add(output("g++", "-print-file-name=" + name).strip())
    return found


def headers(build):
    ours = re.compile(r"^(netns|cni|ipam|deviceplugin)/\S+: #deps")
    found, wanted = set(), False
    for line in output("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line.startswith(" "):
            path = line.strip()
            if wanted and path.startswith("/usr/include/"):
                found.add(path)
        else:
            wanted = bool(ours.match(line))
    return found


def packages_of(paths):
    """Debian's packages that have the files: {name: (version, source package, homepage)}."""
    names = set()
    ordered = sorted(paths)
    for start in range(0, len(ordered), 500):
        # 1: some file is of no package (generated, or reached by a link)
        for line in output("dpkg", "-S", *ordered[start:start + 500], accept=(0, 1)).splitlines():
            if ": " in line and not line.startswith("diversion"):
                names.update(name.strip() for name in line.rsplit(": ", 1)[0].split(","))
    if not names:
        raise Failure("no package of what the programs are made from was found")
    packages = {}
    form = "${Package}\t${Version}\t${source:Package}\t${Homepage}\t${Architecture}\n"
    for line in output("dpkg-query", "-W", "-f", form, *sorted(names)).splitlines():
        name, version, source, homepage, architecture = line.split("\t")
        packages[name] = {"version": version, "source": source, "homepage": homepage, "architecture": architecture}
    return packages


def element(name):
    return "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def debian_package(name, facts):
    return {
        "SPDXID": element(name),
        "name": name,
        "versionInfo": facts["version"],
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "homepage": facts["homepage"] or "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"built from {facts['source']}; licence: /usr/share/doc/{name}/copyright of the package",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{name.replace('+', '%2B')}@{facts['version'].replace('+', '%2B').replace(':', '%3A')}"
                                f"?arch={facts['architecture']}&distro=debian-12",
        }],
    }


def spdx(build, targets, version, revision, when):
    packages = packages_of(archives(build, targets) | headers(build))
    packages.update(packages_of({"/usr/share/doc/libc6/copyright"}))
    own = {
        "SPDXID": element("railhead"),
        "name": "railhead",
        "versionInfo": version,
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"commit {revision}",
    }
    # How each is in the image: the C library as a file, all else linked or compiled in.
    relationships = [("SPDXRef-DOCUMENT", "DESCRIBES", element("railhead"))]
    for name in sorted(packages):
        kind = "DYNAMIC_LINK" if name == "libc6" else "STATIC_LINK"
        relationships.append((element("railhead"), kind, element(name)))
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"railhead-{version}",
        # The same for the same contents.
        "documentNamespace": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([version, revision, packages], sort_keys=True))),
        "creationInfo": {"created": when, "creators": ["Tool: manifests/image/sbom.py"]},
        "packages": [own] + [debian_package(name, packages[name]) for name in sorted(packages)],
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relationships],
    }
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"
