"""What only the sources tell: defaults, variables, paths, names in Kubernetes, fields of CRDs."""

import functools
import pathlib
import re

import yaml

ROOMS = ["cni", "ipam", "deviceplugin"]
# Where a default stands: page, section, key -> file, expression.
DEFAULTS = {
    ("fabric.md", "`rails[]`", "table"): ("cni/fabric/fabric.h", r"kFirstRailTable = (\d+)"),
    ("fabric.md", "`addresses`", "reuseDelaySeconds"): ("cni/fabric/fabric.h", r"kDefaultReuseDelaySeconds = (\d+)"),
    ("cni.md", "`railhead`", "ipam"): ("cni/fabric/network_policy.h", r'kOwnIpam = "([^"]+)"'),
    ("cni.md", "`railhead-ipam`", "reuseDelaySeconds"): ("cni/fabric/fabric.h", r"kDefaultReuseDelaySeconds = (\d+)"),
    ("cni.md", "`railhead-ipam`", "minReuseDelaySeconds"): ("cni/fabric/fabric.h", r"kDefaultMinReuseDelaySeconds = (\d+)"),
}
# Paths of other programs, described where they are used.
FOREIGN_PATH = re.compile(r"/etc/(containerd|crio|cni|cdi|ucx$)|/var/lib/rancher|/run/secrets|\\")


class Sources:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        files = [file for room in ROOMS for file in sorted((self.root / room).rglob("*.[ch]*"))]
        self.text = {str(file.relative_to(self.root)): file.read_text(encoding="utf-8") for file in files}
        self.manifests = "\n".join(file.read_text(encoding="utf-8")
                                   for folder in ("base", "components") for file in
                                   sorted((self.root / "manifests" / folder).rglob("*.yaml")))

    @functools.cache
    def all(self, expression, within=""):
        return {word for file, text in self.text.items() if file.startswith(within)
                for groups in re.findall(expression, text)
                for word in ([groups] if isinstance(groups, str) else groups) if word}

    def default(self, file, expression):
        """What the default is; "" where the expression finds nothing any more."""
        found = re.search(expression, self.text.get(file, ""))
        return found.group(1) if found else ""

    def variables(self):
        return self.all(r'(?:getenv|Environment|RemoveVariable)\("([A-Z_]+)"\)')

    def cni_variables(self):
        return self.all(r'get\("(CNI_\w+)"\)', "cni/protocol/")

    def cni_args(self):
        return self.all(r'"(K8S_[A-Z_]+)"|\bargs\.find\("([A-Z]+)"\)')

    def runtime_config(self, keys):
        """Of railhead, `keys`, and of railhead-ipam."""
        keys = keys | self.all(r'\*?\bruntime(?:->\w+\(|, )"(\w+)"')
        return keys | ({"ips"} if self.all(r"(ReadIps\(\*runtime\))") else set())

    def error_codes(self):
        return self.all(r"kCni\w+ = (\d+);", "cni/protocol/cni_result.h")

    def paths(self):
        found = self.all(r'"((?:/run|/var/(?:run|lib|log)|/opt|/etc)/[^" ]+)"')
        return {path for path in found if not FOREIGN_PATH.search(path)}

    @functools.cache
    def kubernetes_names(self):
        """Names with a domain that the code or the manifests use, but for examples' resources."""
        text = "\n".join(self.text.values()) + self.manifests
        found = set(re.findall(r"((?:railhead|k8s\.v1\.cni\.cncf)\.io/[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*)", text))
        return {name for name in found if not re.fullmatch(r"railhead\.io/(rail\d+|v1alpha1)", name)}

    @functools.cache
    def crd_fields(self):
        """{kind: {field: description of its type}}"""
        file = self.root / "manifests/components/node-index/crds.yaml"
        kinds = {}
        for crd in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            fields = schema["properties"]["spec"]["properties"]
            kinds[crd["spec"]["names"]["kind"]] = {f"spec.{name}": field for name, field in fields.items()}
        return kinds
