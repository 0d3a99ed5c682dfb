"""Faults for the pages, which check.py has to find: page, what is there, what is put in its place, a word of the complaint."""

PLANTED = [
    # A key that is not listed, one that is not there, an object without a table.
    ("fabric.md", "| `vlanQoS` |", "| vlanQoS |", "lacks '| `vlanQoS`"),
    ("fabric.md", "| `fenceSeconds` |", "| `fenceTime` |", "has '| `fenceTime`"),
    ("cni.md", "`log_file`, ", "", "lacks '| `log_file`"),
    ("cni.md", "<!-- keys of network: ipam.dns -->", "", "without a table: domain, nameservers"),
    # Type, default, what is said by hand.
    ("fabric.md", "| `vlan` | integer 0..4094", "| `vlan` | integer 0..4095", "integer 0..4095"),
    ("fabric.md", "| `rails` | list of objects | required", "| `rails` | list of objects | -", "list of objects | -"),
    ("cni.md", "| `announce` | bool | `true`", "| `announce` | bool | `false`", "bool | `false`"),
    ("fabric.md", "| `fabrics` | list of strings | `[]` | paths that `fabric` may name instead of `/etc/railhead/fabric.json` |",
     "| `fabrics` | list of strings | `[]` | |", "lacks its purpose"),
    ("fabric.md", "| `subnet` | string | - |", "| `subnet` | string | |", "the meaning of its absence"),
    ("fabric.md", "| 100 + position |", "| 101 + position |", "`table` is 100"),
    # Lists of the sources.
    ("README.md", "| `GRPC_VERBOSITY` |", "| `GRPC_TRACE` |", "lacks `GRPC_VERBOSITY`"),
    ("cni.md", "| `K8S_POD_UID` |", "| K8S_POD_UID |", "lacks `K8S_POD_UID`"),
    ("cni.md", "| 105 |", "| 107 |", "lacks `105`"),
    ("kubernetes.md", "`spec.reclaimedBy`", "`spec.reclaimed`", "lacks `spec.reclaimedBy`"),
    ("kubernetes.md", "`railhead.io/nics`", "`railhead.io/nic-nodes`", "lacks `railhead.io/nics`"),
    ("kernel-interfaces.md", "`/run/railhead/bind.sock`", "`/run/railhead/binder.sock`", "lacks `/run/railhead/bind.sock`"),
    # What --help says otherwise.
    ("programs.md", "`--kubelet-dir`", "`--kubelet-directory`", "is not what --help says"),
]
