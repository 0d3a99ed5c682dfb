#!/usr/bin/env python3
"""build.py - the image that the DaemonSet runs, as an OCI image layout, without a container engine.

usage: manifests/image/build.py [--build DIR]... [--tools] [--out FILE] [--name NAME] [--sbom FILE]
  --build DIR   the release build (build/release), made by `tests/setup.sh --build`. Its programs are built first, as far
                as they are not. Of several, one for each architecture, the archive has an index: `skopeo copy --all`
  --tools       the image railhead-tools for tests in pods: railctl, perftest, and the verbs providers
  --out FILE    the archive to write (DIR/railhead-image.tar, DIR/railhead-tools-image.tar):
                `ctr -n k8s.io images import FILE`, `skopeo copy oci-archive:FILE docker://...`, `podman load -i FILE`,
                `skopeo copy oci-archive:FILE docker-daemon:NAME` for docker
  --name NAME   its name and tag (railhead:VERSION, railhead-tools:VERSION)
  --sbom FILE   also the bill of materials, SPDX 2.3 (FILE.spdx.json beside the archive)

The image has no base. Two layers: files of Debian packages; and the programs, with licence and bill of materials. railhead-nvml needs the
C library of the package libc6, as it is installed here, or unpacked in the sysroot of a cross build. Its files are
compared with the package's checksums. The packages of --tools are unpacked by package/sysroot.sh. The same commit
built twice on the same packages gives the same image, byte by byte.
Prints one line of JSON: name, digest, bytes.
exit status: 0; 1 something is missing or not as it should be, with the reason on stderr; 2 wrong command line.
"""
import argparse
import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

import sbom

REPO = pathlib.Path(__file__).resolve().parents[2]
# Where each lies in the image: runtimes look for no other place than PATH.
BIN = "usr/bin"
LIMIT = 40 << 20
ARCHITECTURES = {"Advanced Micro Devices X86-64": "amd64", "AArch64": "arm64"}
# A shell for `kubectl exec` is busybox's.
TOOLS = ["perftest", "rdmacm-utils", "ibverbs-utils", "ibverbs-providers", "busybox-static"]


class Failure(Exception):
    """What the caller can do something about."""


def output(*command):
    try:
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
    except FileNotFoundError as error:
        raise Failure(f"there is no program {command[0]}") from error
    except subprocess.CalledProcessError as error:
        raise Failure(f"{' '.join(command[:3])}...: {error.stderr.strip()}") from error


class Layer:
    """A tar whose bytes depend on nothing but names and contents."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.members = {}

    def _info(self, name, mode):
        info = tarfile.TarInfo(name)
        info.mode, info.mtime = mode, self.epoch
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        return info

    def directory(self, name):
        parts = name.split("/")
        for depth in range(1, len(parts) + 1):
            info = self._info("/".join(parts[:depth]), 0o755)
            info.type = tarfile.DIRTYPE
            self.members.setdefault(info.name, (info, None))

    def file(self, name, content, mode=0o644):
        if "/" in name:
            self.directory(name.rsplit("/", 1)[0])
        info = self._info(name, mode)
        info.size = len(content)
        self.members[name] = (info, content)

    def link(self, name, target):
        if "/" in name:
            self.directory(name.rsplit("/", 1)[0])
        info = self._info(name, 0o777)
        info.type, info.linkname = tarfile.SYMTYPE, target
        self.members[name] = (info, None)

    def tar(self):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name in sorted(self.members):
                info, content = self.members[name]
                archive.addfile(info, io.BytesIO(content) if content is not None else None)
        return stream.getvalue()


def needed_libraries(programs):
    """Names of the shared objects, and the loader's path, that the programs ask for."""
    names, loader = set(), None
    for program in programs:
        headers = output("readelf", "-dlW", str(program))
        names.update(re.findall(r"\(NEEDED\).*\[(.*)\]", headers))
        found = re.search(r"program interpreter: ([^\]]+)\]", headers)
        loader = found.group(1) if found else loader
    if loader is None:
        raise Failure("no program needs a C library, as railhead-nvml should: this is no release build")
    names.discard(os.path.basename(loader))
    return sorted(names), loader


def package_checksums(package, sysroot):
    sums = {}
    for line in sbom.dpkg_query(sysroot, "--control-show", package, "md5sums").splitlines():
        digest, path = line.split(None, 1)
        sums["/" + path] = digest
    return sums


def base_layer(epoch, directories):
    """What each image has. As all distributions have it: paths of /var/run and /run are the same, and those of /bin and /usr/bin."""
    layer = Layer(epoch)
    layer.directory("run")
    layer.link("var/run", "../run")
    for name in directories:
        layer.directory("usr/" + name)
        layer.link(name, "usr/" + name)
    layer.file("etc/passwd", b"root:x:0:0:root:/:/usr/sbin/nologin\n")
    layer.file("etc/group", b"root:x:0:\n")
    return layer


def library_layer(epoch, programs, sysroot):
    names, loader = needed_libraries(programs)
    layer = base_layer(epoch, ["bin", *sorted({"lib", loader.split("/")[1]})])
    sums = package_checksums("libc6", sysroot)
    by_name = {os.path.basename(path): path for path in sums}
    for name in [*names, os.path.basename(loader)]:
        path = by_name.get(name)
        if path is None:
            raise Failure(f"{name} is not of libc6: a program is linked with more than the C library")
        content = pathlib.Path(sysroot + path).read_bytes()
        if hashlib.md5(content).hexdigest() != sums[path]:  # noqa: what dpkg keeps
            raise Failure(f"{sysroot}{path} is not as the package libc6 has it: "
                          + (f"remove {sysroot} and build again" if sysroot else "reinstall libc6"))
        inside = merged(path)
        layer.file(inside, content, 0o755)
        if name == os.path.basename(loader):
            layer.link("usr" + loader, os.path.relpath("/" + inside, "/usr" + os.path.dirname(loader)))
    layer.file("usr/share/doc/libc6/copyright", pathlib.Path(sysroot + "/usr/share/doc/libc6/copyright").read_bytes())
    return layer


def merged(path):
    """Where a file of a package lies in an image whose /bin, /sbin, /lib and /lib64 are links."""
    path = path.lstrip("/")
    return "usr/" + path if path.split("/")[0] in ("bin", "sbin", "lib", "lib64") else path


def tools_packages(sysroot):
    """TOOLS and what they need but adduser, with which maintainer scripts make users: none runs."""
    needs = {}
    for line in sbom.dpkg_query(sysroot, "-W", "-f", "${Package}\t${Pre-Depends}, ${Depends}\n").splitlines():
        name, wanted = line.split("\t")
        needs[name] = set(re.findall(r"(?:^|[,|])\s*([a-z0-9+.-]+)", wanted))
    found, waiting = set(), list(TOOLS)
    while waiting:
        name = waiting.pop()
        if name in needs and name != "adduser" and name not in found:
            found.add(name)
            waiting += needs[name]
    return found


def tools_layer(epoch, sysroot, packages):
    layer = base_layer(epoch, ["bin", "sbin", "lib", "lib64"])
    left_out = re.compile(r"usr/share/(man|locale|info|lintian|bug|doc/(?!.*/copyright$))")
    for package in sorted(packages):
        for path in sbom.dpkg_query(sysroot, "-L", package).splitlines():
            real, inside = pathlib.Path(sysroot + path), merged(path)
            if left_out.match(inside):
                continue
            if real.is_symlink():
                target = os.path.relpath(os.path.normpath(real.parent / os.readlink(real)), sysroot)
                layer.link(inside, os.path.relpath("/" + merged(target), "/" + os.path.dirname(inside)))
            elif real.is_file():
                layer.file(inside, real.read_bytes(), 0o755 if os.access(real, os.X_OK) else 0o644)
    for name in output("busybox", "--list").split():
        if f"usr/bin/{name}" not in layer.members and name != "busybox":
            layer.link(f"usr/bin/{name}", "busybox")
    return layer


def program_layer(epoch, programs, bill):
    layer = Layer(epoch)
    for program in programs:
        layer.file(f"{BIN}/{program.name}", program.read_bytes(), 0o755)
    layer.file("usr/share/doc/railhead/copyright", (REPO / "LICENSE").read_bytes())
    layer.file("usr/share/doc/railhead/sbom.spdx.json", bill)
    return layer


class Blobs:
    def __init__(self):
        self.content = {}

    def add(self, content, media_type):
        digest = hashlib.sha256(content).hexdigest()
        self.content[digest] = content
        return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(content)}


def compact(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def image(blobs, layers, platform, run, created, labels):
    """Adds the blobs of an image, and returns the descriptor of its manifest."""
    packed, plain = [], []
    for layer in layers:
        tar = layer.tar()
        plain.append("sha256:" + hashlib.sha256(tar).hexdigest())
        packed.append(blobs.add(gzip.compress(tar, 9, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip"))
    config = blobs.add(compact({
        **platform, "created": created,
        "config": {**run, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": plain},
    }), "application/vnd.oci.image.config.v1+json")
    manifest = blobs.add(compact({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": packed, "annotations": labels,
    }), "application/vnd.oci.image.manifest.v1+json")
    return dict(manifest, platform=platform)


def index(blobs, manifests, labels):
    """What the archive names: the image, or an index of the images of several architectures."""
    if len(manifests) == 1:
        return manifests[0]
    kind = "application/vnd.oci.image.index.v1+json"
    return blobs.add(compact({"schemaVersion": 2, "mediaType": kind, "manifests": manifests, "annotations": labels}), kind)


def write_archive(path, epoch, blobs, manifest, name):
    layer = Layer(epoch)
    layer.file("oci-layout", compact({"imageLayoutVersion": "1.0.0"}))
    described = dict(manifest, annotations={
        "io.containerd.image.name": name if "/" in name else "docker.io/library/" + name,
        "org.opencontainers.image.ref.name": name.rsplit(":", 1)[1],
    })
    layer.file("index.json", compact({"schemaVersion": 2, "manifests": [described]}))
    for digest, content in blobs.content.items():
        layer.file("blobs/sha256/" + digest, content)
    temporary = path.with_name(path.name + ".new")
    temporary.write_bytes(layer.tar())
    temporary.replace(path)


def version_of(build):
    version = sbom.cached(build, "CMAKE_PROJECT_VERSION")
    if not version:
        raise Failure(f"{build} is no build of Railhead")
    return version


def architecture_of(program):
    machine = re.search(r"Machine:\s*(.*)", output("readelf", "-hW", str(program))).group(1)
    if machine not in ARCHITECTURES:
        raise Failure(f"{program} is for {machine}: no image of that architecture can be made")
    return ARCHITECTURES[machine]


def origin():
    """Commit and time that the image is of; an archive of the sources has none, and takes SOURCE_DATE_EPOCH."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        revision, committed = output("git", "-C", str(REPO), "log", "-1", "--format=%H %ct").split()
    except Failure:
        revision, committed = "unknown", "0"
    epoch = int(epoch or committed)
    when = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return revision, epoch, when


def built_programs(build):
    """The names of the programs that a build installs, which are built first. One at a time: two ninjas in a tree spoil what they note of it."""
    if not (build / "CMakeCache.txt").exists():
        raise Failure(f"there is no build in {build}: run tests/setup.sh --build")
    command = ["flock", str(build / "build.lock"), "cmake", "--build", str(build), "--target", "programs"]
    built = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if built.returncode:
        raise Failure(f"{' '.join(command[2:])} failed:\n{built.stdout[-2000:]}")
    return sbom.cached(build, "RAILHEAD_PROGRAMS").split(";")


class Part:
    """What one build gives: its architecture, the layer of Debian's files, the programs, and packages for the bill."""

    def __init__(self, build, tools, epoch):
        names = built_programs(build)
        self.programs = [build / "bin" / name for name in names]
        self.version = version_of(build)
        self.architecture = architecture_of(build / "bin/railctl")
        self.within = sbom.linked(build, names)
        if tools:
            self.programs = [build / "bin/railctl"]
            sysroot = output(str(REPO / "manifests/package/sysroot.sh"), self.architecture, *TOOLS).strip()
            packages = tools_packages(sysroot)
            self.beside = sbom.described(sysroot, packages)
            self.layer = tools_layer(epoch, sysroot, packages)
        else:
            sysroot = sbom.cached(build, "RAILHEAD_SYSROOT")
            self.beside = sbom.packages_of({sysroot + "/usr/share/doc/libc6/copyright"}, sysroot)
            self.layer = library_layer(epoch, self.programs, sysroot)


def make(options):
    builds = options.build or [REPO / "build/release"]
    title = "railhead-tools" if options.tools else "railhead"
    revision, epoch, when = origin()
    parts = [Part(build, options.tools, epoch) for build in builds]
    version = parts[0].version
    name = options.name or f"{title}:{version}"
    if ":" not in name.rsplit("/", 1)[-1]:
        raise Failure(f"--name {name} has no tag: NAME:TAG")
    if len({part.architecture for part in parts}) != len(parts) or {part.version for part in parts} != {version}:
        raise Failure("the builds are not of one version and of different architectures: "
                      + ", ".join(f"{part.version} {part.architecture}" for part in parts))
    labels = {
        "org.opencontainers.image.title": title,
        "org.opencontainers.image.description":
            "railctl, perftest and verbs providers for tests in pods" if options.tools else "SR-IOV RoCE networking for GPU pods",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": revision,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    run = {"Cmd": ["sh"], "Env": ["PATH=/usr/bin:/usr/sbin"]} if options.tools else {"Entrypoint": [f"/{BIN}/railheadd"], "Env": ["PATH=/usr/bin"]}
    blobs, manifests = Blobs(), []
    for part in parts:
        bill = sbom.spdx([(part.architecture, part.within, part.beside)], version, revision, when)
        before = sum(len(content) for content in blobs.content.values())
        manifests.append(image(blobs, [part.layer, program_layer(epoch, part.programs, bill)],
                               {"architecture": part.architecture, "os": "linux"}, run, when, labels))
        size = sum(len(content) for content in blobs.content.values()) - before
        if size > LIMIT:
            raise Failure(f"the image of {part.architecture} has {size >> 20} MiB, more than {LIMIT >> 20}")
    named = index(blobs, manifests, labels)
    out = options.out or builds[0] / (f"{title}-image.tar")
    write_archive(out, epoch, blobs, named, name)
    bill = sbom.spdx([(part.architecture, part.within, part.beside) for part in parts], version, revision, when)
    (options.sbom or out.with_name(out.name + ".spdx.json")).write_bytes(bill)
    size = sum(len(content) for content in blobs.content.values())
    print(json.dumps({"name": name, "digest": named["digest"], "bytes": size, "archive": str(out)}))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0], description=__doc__.split("\n")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, action="append")
    parser.add_argument("--tools", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--name")
    parser.add_argument("--sbom", type=pathlib.Path)
    try:
        make(parser.parse_args())
    except (Failure, sbom.Failure, OSError) as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
