#!/usr/bin/env python3
"""The bill of materials, SPDX 2.3 in JSON: of an image (build.py), and of all files of a release.

usage: manifests/image/sbom.py DIRECTORY VERSION
  DIRECTORY   the files of a release. Each NAME.spdx.json beside an image NAME becomes part of
              DIRECTORY/railhead-VERSION.spdx.json, and is removed.

What is in the programs is asked of the build itself: the archives and headers that ninja's targets were made
from, and of dpkg, whose packages they are. So a library that is added is in it without being named here.
exit status: 0; 1 with the reason on stderr; 2 wrong command line.
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid


class Failure(Exception):
    """What the caller can do something about."""


def output(*command, accept=(0,)):
    run = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode not in accept:
        raise Failure(f"{' '.join(command[:4])}: {run.stderr.strip()}")
    return run.stdout


def inside(path, sysroot):
    """The path as the packages of the sysroot have it, or nothing if it is no path there."""
    path = os.path.normpath(path)
    return path[len(sysroot):] if sysroot and path.startswith(sysroot + "/") else None


def cached(build, name):
    """The value of a variable of the build, empty if it has none."""
    found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found.group(1) if found else ""


def compiler(build):
    """Of a cross build, CMake's cache does not have it: the toolchain file names it."""
    for file in build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake"):
        found = re.search(r'^set\(CMAKE_CXX_COMPILER "(.+)"\)$', file.read_text(), re.M)
        if found:
            return found.group(1)
    raise Failure(f"{build} does not say which compiler it is of")


def archives(build, targets, sysroot):
    inputs = output("ninja", "-C", str(build), "-t", "inputs", *targets).splitlines()
    found = {line for line in inputs if re.match(r"(/usr)?/lib/.*\.(a|o)$", inside(line, sysroot) or line)}
    # Those that the compiler's driver adds are named in no target: the C library and the compiler's own.
    driver = [compiler(build), *(["--sysroot=" + sysroot] if sysroot else []), *cached(build, "CMAKE_EXE_LINKER_FLAGS").split()]
    for name in ("libc.a", "libstdc++.a", "libgcc.a"):
        found.add(os.path.normpath(output(*driver, "-print-file-name=" + name).strip()))
    return found


def headers(build, sysroot):
    ours = re.compile(r"^(netns|cni|ipam|deviceplugin)/\S+: #deps")
    found, wanted = set(), False
    for line in output("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line.startswith(" "):
            path = line.strip()
            if wanted and (inside(path, sysroot) or path).startswith("/usr/include/"):
                found.add(path)
        else:
            wanted = bool(ours.match(line))
    return found


def dpkg_query(sysroot, *arguments, accept=(0,)):
    where = ["--admindir=" + sysroot + "/var/lib/dpkg"] if sysroot else []
    return output("dpkg-query", *where, *arguments, accept=accept)


def described(sysroot, names):
    """Debian's packages: [{name, version, source package, homepage, architecture}]."""
    keys = ["name", "version", "source", "homepage", "architecture"]
    form = "${Package}\t${Version}\t${source:Package}\t${Homepage}\t${Architecture}\n"
    return [dict(zip(keys, line.split("\t"))) for line in dpkg_query(sysroot, "-W", "-f", form, *sorted(names)).splitlines()]


def packages_of(paths, sysroot=""):
    """Debian's packages that have the files: those of the sysroot, and this machine's for all other files."""
    packages = []
    there = {inside(path, sysroot) for path in paths} - {None}
    here = {path for path in paths if inside(path, sysroot) is None}
    for root, files in ((sysroot, sorted(there)), ("", sorted(here))):
        names = set()
        for start in range(0, len(files), 500):
            # 1: some file is of no package (generated, or reached by a link)
            for line in dpkg_query(root, "-S", *files[start:start + 500], accept=(0, 1)).splitlines():
                if ": " in line and not line.startswith("diversion"):
                    names.update(name.strip() for name in line.rsplit(": ", 1)[0].split(","))
        packages += described(root, names) if names else []
    if not packages:
        raise Failure("no package of what the programs are made from was found")
    return packages


def linked(build, targets):
    """What the programs of a build are made from."""
    sysroot = cached(build, "RAILHEAD_SYSROOT")
    return packages_of(archives(build, targets, sysroot) | headers(build, sysroot), sysroot)


def element(*parts):
    return "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(parts))


def package(identity, name, version, **more):
    return {
        "SPDXID": identity,
        "name": name,
        "versionInfo": version,
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        **more,
    }


def debian_package(facts):
    name, version, architecture = facts["name"], facts["version"], facts["architecture"]
    purl = f"pkg:deb/debian/{name.replace('+', '%2B')}@{version.replace('+', '%2B').replace(':', '%3A')}?arch={architecture}&distro=debian-12"
    return package(
        element(name, architecture, version), name, version, supplier="Organization: Debian", homepage=facts["homepage"] or "NOASSERTION",
        sourceInfo=f"built from {facts['source']}; licence: /usr/share/doc/{name}/copyright of the package",
        externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}])


def own(identity, name, version, revision):
    return package(identity, name, version, licenseConcluded="Apache-2.0", licenseDeclared="Apache-2.0", sourceInfo=f"commit {revision}")


def document(name, packages, relations, when):
    """packages: {SPDXID: package}; relations: (element, kind, element). The same contents have the same namespace."""
    elements = [packages[identity] for identity in sorted(packages)]
    relations = [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in sorted(set(relations))]
    return json.dumps({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([name, elements, relations], sort_keys=True))),
        "creationInfo": {"created": when, "creators": ["Tool: manifests/image/sbom.py"]},
        "packages": elements,
        "relationships": relations,
    }, indent=1, sort_keys=True).encode() + b"\n"


def spdx(parts, version, revision, when):
    """The bill of an image. parts: (architecture, packages linked into the programs, packages that lie in it as files)."""
    source = element("railhead")
    packages, relations = {source: own(source, "railhead", version, revision)}, []
    for architecture, within, beside in parts:
        programs = element("railhead", architecture)
        packages[programs] = own(programs, "railhead-" + architecture, version, revision)
        relations += [(programs, "GENERATED_FROM", source), ("SPDXRef-DOCUMENT", "DESCRIBES", programs)]
        for facts, origin, kind in [(facts, programs, "STATIC_LINK") for facts in within] + \
                [(facts, "SPDXRef-DOCUMENT", "DESCRIBES") for facts in beside]:
            entry = debian_package(facts)
            packages[entry["SPDXID"]] = entry
            relations.append((origin, kind, entry["SPDXID"]))
            if facts["name"] == "libc6":
                relations.append((programs, "DYNAMIC_LINK", entry["SPDXID"]))
    return document(f"railhead-{version}", packages, relations, when)


def release(directory, version):
    """One bill of all files: what the images' bills say, and each file with its checksum and what it holds."""
    packages, relations, contents, created = {}, [], {}, set()
    for path in sorted(directory.glob("*.spdx.json")):
        bill = json.loads(path.read_text())
        created.add(bill["creationInfo"]["created"])
        packages.update({entry["SPDXID"]: entry for entry in bill["packages"]})
        for entry in bill["relationships"]:
            triple = (entry["spdxElementId"], entry["relationshipType"], entry["relatedSpdxElement"])
            if triple[0] == "SPDXRef-DOCUMENT":
                contents.setdefault(path.name.removesuffix(".spdx.json"), []).append(triple[2])
            else:
                relations.append(triple)
        path.unlink()
    if not created:
        raise Failure(f"{directory} has no image with its bill of materials (build.py --sbom)")
    for path in sorted(directory.iterdir()):
        identity = element("file", path.name)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        packages[identity] = package(identity, path.name, version, packageFileName=path.name,
                                     checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", identity))
        machine = re.search(r"(amd64|x86_64)|(arm64|aarch64)", path.name)
        held = contents.get(path.name) or ([element("railhead", "amd64" if machine.group(1) else "arm64")] if machine else [])
        relations += [(identity, "CONTAINS", what) for what in held] or [(identity, "GENERATED_FROM", element("railhead"))]
    unknown = {end for a, _, b in relations for end in (a, b)} - set(packages) - {"SPDXRef-DOCUMENT"}
    if unknown:
        raise Failure(f"no image has {', '.join(sorted(unknown))}, which a file of the release holds")
    (directory / f"railhead-{version}.spdx.json").write_bytes(document(f"railhead-{version}-release", packages, relations, max(created)))


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        release(pathlib.Path(sys.argv[1]), sys.argv[2])
    except (Failure, OSError) as error:
        print(f"sbom.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
