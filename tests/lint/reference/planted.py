"""Faults for the pages, which check.py has to find: page, what is there, what is put in its place, a word of the complaint."""

PLANTED = [
    # A key that is not listed, one that is not there, one twice.
    ("fabric.md", "| `vlanQoS` |", "| vlanQoS |", "lacks `vlanQoS`"),
    ("fabric.md", "| `blockSize` |", "| `blockLength` |", "has `blockLength`"),
    ("cni.md", "| `spoofchk` |", "| `trust` |", "has `trust` twice"),
    ("cni.md", "`log_file`, ", "", "lacks `log_file`"),
    # Type, range, choice, required, default.
    ("fabric.md", "| `softRoce` | bool |", "| `softRoce` | string |", "`softRoce` is true or false"),
    ("fabric.md", "| `name` | string | required", "| `name` | list of strings | required", "`name` is a string"),
    ("fabric.md", "| `vlan` | integer 0..4094", "| `vlan` | integer 0..4095", "is 0..4094"),
    ("fabric.md", "`increment`, `deterministic`", "`increment`, `random`", "is one of"),
    ("fabric.md", "| `endpoints` | list of strings | required", "| `endpoints` | list of strings | -", "is required"),
    ("fabric.md", "| `vfSeconds` | integer 1..3600 | `60`", "| `vfSeconds` | integer 1..3600 | `30`", "of `vfSeconds` is 60"),
    ("cni.md", "| `announce` | bool | `true`", "| `announce` | bool | `false`", "of `announce` is true"),
    # Lists of the sources.
    ("README.md", "| `GRPC_VERBOSITY` |", "| `GRPC_TRACE` |", "lacks `GRPC_VERBOSITY`"),
    ("cni.md", "| `K8S_POD_UID` |", "| K8S_POD_UID |", "lacks `K8S_POD_UID`"),
    ("cni.md", "| 105 |", "| 107 |", "lacks `105`"),
    ("kubernetes.md", "`spec.takenBy`", "`spec.taken`", "lacks `spec.takenBy`"),
    ("kubernetes.md", "`railhead.io/pool`", "`railhead.io/subnet`", "lacks `railhead.io/pool`"),
    ("../interfaces.md", "`/run/railhead/bind.sock`", "`/run/railhead/binder.sock`", "lacks `/run/railhead/bind.sock`"),
    # What --help says otherwise.
    ("programs.md", "`--kubelet-dir`", "`--kubelet-directory`", "is not what --help says"),
]
