#!/usr/bin/env python3
"""build.py - the image that the DaemonSet runs, as an OCI image layout, without a container engine.

usage: manifests/image/build.py [--build DIR] [--out FILE] [--name NAME] [--sbom FILE]
  --build DIR   the release build (build/release), made by `tests/setup.sh --build`
  --out FILE    the archive to write (DIR/railhead-image.tar): `ctr -n k8s.io images import FILE`,
                `skopeo copy oci-archive:FILE docker://...`, `podman load -i FILE`
  --name NAME   its name and tag (railhead:VERSION)
  --sbom FILE   also the bill of materials, SPDX 2.3 (FILE.spdx.json beside the archive)

Two layers: the C library of the Debian package libc6 as it is installed here (its files are compared with the
package's checksums), which railhead-nvml needs; and the programs, with licence and bill of materials. The same commit built twice on the same packages gives the same image, byte by byte.
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
PROGRAMS = ["railhead", "railhead-ipam", "railheadd", "railctl", "railhead-nvml"]
# Where each lies in the image: runtimes look for no other place than PATH.
BIN = "usr/bin"
LIMIT = 40 << 20


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


def package_checksums(package):
    sums = {}
    for line in output("dpkg-query", "--control-show", package, "md5sums").splitlines():
        digest, path = line.split(None, 1)
        sums["/" + path] = digest
    return sums


def library_layer(epoch, names, loader):
    layer = Layer(epoch)
    # As all distributions have it: paths of /var/run and /run are the same.
    layer.directory("run")
    layer.link("var/run", "../run")
    for name in ("bin", "lib", "lib64"):
        layer.link(name, "usr/" + name)
    sums = package_checksums("libc6")
    by_name = {os.path.basename(path): path for path in sums}
    for name in [*names, os.path.basename(loader)]:
        path = by_name.get(name)
        if path is None:
            raise Failure(f"{name} is not of libc6: a program is linked with more than the C library")
        content = pathlib.Path(path).read_bytes()
        if hashlib.md5(content).hexdigest() != sums[path]:  # noqa: what dpkg keeps
            raise Failure(f"{path} is not as the package libc6 has it: reinstall libc6")
        inside = path.lstrip("/")
        inside = inside if inside.startswith("usr/") else "usr/" + inside
        layer.file(inside, content, 0o755)
        if name == os.path.basename(loader):
            layer.link("usr" + loader, os.path.relpath("/" + inside, "/usr" + os.path.dirname(loader)))
    layer.file("etc/passwd", b"root:x:0:0:root:/:/usr/sbin/nologin\n")
    layer.file("etc/group", b"root:x:0:\n")
    layer.file("usr/share/doc/libc6/copyright", pathlib.Path("/usr/share/doc/libc6/copyright").read_bytes())
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


def image(layers, created, labels):
    """The blobs of an image, and the descriptor of its manifest."""
    blobs = Blobs()
    packed, plain = [], []
    for layer in layers:
        tar = layer.tar()
        plain.append("sha256:" + hashlib.sha256(tar).hexdigest())
        packed.append(blobs.add(gzip.compress(tar, 9, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip"))
    config = blobs.add(compact({
        "architecture": "amd64", "os": "linux", "created": created,
        "config": {"Entrypoint": [f"/{BIN}/railheadd"], "Env": ["PATH=/usr/bin"], "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": plain},
    }), "application/vnd.oci.image.config.v1+json")
    manifest = blobs.add(compact({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": packed, "annotations": labels,
    }), "application/vnd.oci.image.manifest.v1+json")
    return blobs, manifest


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
    found = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    if not found:
        raise Failure(f"{build} is no build of Railhead")
    return found.group(1)


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


def make(options):
    build = options.build
    programs = [build / "bin" / name for name in PROGRAMS]
    for program in [build / "CMakeCache.txt", *programs]:
        if not program.exists():
            raise Failure(f"there is no {program}: run tests/setup.sh --build")
    version = version_of(build)
    name = options.name or "railhead:" + version
    if ":" not in name.rsplit("/", 1)[-1]:
        raise Failure(f"--name {name} has no tag: NAME:TAG")
    revision, epoch, when = origin()
    bill = sbom.spdx(build, PROGRAMS, version, revision, when)
    labels = {
        "org.opencontainers.image.title": "railhead",
        "org.opencontainers.image.description": "SR-IOV RoCE networking for GPU pods",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": revision,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    names, loader = needed_libraries(programs)
    layers = [library_layer(epoch, names, loader), program_layer(epoch, programs, bill)]
    blobs, manifest = image(layers, when, labels)
    size = sum(len(content) for content in blobs.content.values())
    if size > LIMIT:
        raise Failure(f"the image has {size >> 20} MiB, more than {LIMIT >> 20}")
    out = options.out or build / "railhead-image.tar"
    write_archive(out, epoch, blobs, manifest, name)
    (options.sbom or out.with_name(out.name + ".spdx.json")).write_bytes(bill)
    print(json.dumps({"name": name, "digest": manifest["digest"], "bytes": size, "archive": str(out)}))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0], description=__doc__.split("\n")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=REPO / "build/release")
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
