"""A node with many VFs, for railheadd: a made-up sysfs and a fabric.

A DGX H100 with VFs on the eight ports that have a GPU beside them (railhead_node_bench tree). The fabric has a rail
for each of the eight. Counters are there as real NICs have them, so that reading health is the real work.
"""
import json
import os
import pathlib
import subprocess

RESOURCE = 'railhead.io/roce'
PROCESSES = 2000  # as many as a GPU node has


class Tree:
    """Files and links below a directory, which stands for the root."""

    def __init__(self, root: str) -> None:
        self.root = root

    def write(self, path: str, text: str | bytes) -> None:
        full = pathlib.Path(self.root + path)
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(text if isinstance(text, bytes) else text.encode())

    def link(self, path: str, target: str) -> None:
        full = pathlib.Path(self.root + path)
        full.parent.mkdir(parents=True, exist_ok=True)
        full.symlink_to(target)


def build(bench: str, root: str, vfs_per_pf: int, late: bool) -> list[str]:
    """Below an existing directory; the names of its network devices, for the program that makes them."""
    command = [bench, 'tree', '--root', root, '--vfs-per-pf', str(vfs_per_pf)]
    nics = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    tree, netdevs = Tree(root), []
    for i, nic in enumerate(nics):
        add_counters(tree, nic['address'], f'rail{i}', f'mlx5_{i}')
        vfs = [f'rail{i}v{n}' for n in range(len(nic['vfs']))]
        for vf in vfs:
            tree.write(f'/sys/class/net/{vf}/flags', '0x1003\n')
        netdevs += [f'rail{i}', *vfs]
    tree.write('/etc/railhead/node-name', 'node0\n')
    tree.write('/etc/railhead/fabric.json', json.dumps(fabric([nic['address'] for nic in nics if nic['vfs']], late)))
    return netdevs


def add_counters(tree: Tree, pf: str, netdev: str, rdma: str) -> None:
    """What a ConnectX PF has and the bare tree lacks."""
    device, net, port = f'/sys/bus/pci/devices/{pf}', f'/sys/class/net/{netdev}', f'/sys/class/infiniband/{rdma}/ports/1'
    tree.write(device + '/sriov_totalvfs', '128\n')
    for kind in ('FATAL', 'NONFATAL'):
        errors = f'RxErr 0\nBadTLP 0\nBadDLLP 0\nRollover 0\nTOTAL_ERR_{kind} 0\n'
        tree.write(f'{device}/aer_dev_{kind.lower()}', errors)
    for name, value in (('flags', '0x1003'), ('operstate', 'up'), ('carrier_down_count', '1')):
        tree.write(f'{net}/{name}', value + '\n')
    for name in ('symbol_error', 'link_error_recovery', 'link_downed', 'local_link_integrity_errors',
                 'excessive_buffer_overrun_errors', 'port_xmit_discards'):
        tree.write(f'{port}/counters/{name}', '0\n')


def fabric(pfs: list[str], late: bool) -> dict:
    rails = [{'name': f'r{i}', 'pf': pf, 'vlan': 100 + i, 'subnet': f'10.{100 + i}.0.0/22',
              'nodeRanges': {'node0': f'10.{100 + i}.0.10-10.{100 + i}.0.200'}} for i, pf in enumerate(pfs)]
    pool = {'resource': RESOURCE, 'rails': [rail['name'] for rail in rails], 'device': 'vf',
            'binding': 'late' if late else 'early'}
    return {'version': 1, 'rails': rails, 'pools': [pool]}


def config_with(capability: int, offset: int, value: int) -> bytes:
    """A configuration space with one extended capability, of which the word at `offset` is `value`."""
    config = bytearray(4096)
    config[0x100], config[0x102], config[0x100 + offset] = capability, 1, value  # its version; no next one
    return bytes(config)


def add_facts_for_doctor(root: str) -> None:
    """What `railctl doctor` looks for: a node as it should be. Groups of PFs and accelerators, ACS of bridges; VFs are
    as they are."""
    tree, devices, groups = Tree(root), '/sys/bus/pci/devices/', 0
    for address in sorted(os.listdir(root + devices)):
        folder = pathlib.Path(root + devices + address)
        if (folder / 'physfn').exists():
            continue
        if (folder / 'class').read_text().startswith('0x0604'):
            tree.write(f'{devices}{address}/config', config_with(0x0d, 6, 0x01))
            continue
        tree.write(f'/sys/kernel/iommu_groups/{groups}/type', 'identity\n')
        (folder / 'iommu_group').symlink_to(f'{root}/sys/kernel/iommu_groups/{groups}')
        groups += 1
        if (folder / 'sriov_totalvfs').exists() and (folder / 'infiniband').exists():
            add_pf_for_doctor(tree, folder, address)
    add_processes(tree)
    for path, text in (('/sys/module/ib_core/parameters/netns_mode', 'Y\n'), ('/sys/class/misc/rdma_cm/dev', '10:58\n'),
                       ('/sys/module/nvidia/version', '550.54\n'), ('/sys/module/nvidia_peermem/version', '550.54\n'),
                       ('/etc/containerd/config.toml', 'version = 3\n'),
                       ('/run/systemd/netif/links/1', 'ADMIN_STATE=unmanaged\n'),
                       ('/etc/cni/net.d/10-calico.conflist', '{"name": "k8s", "plugins": [{"type": "calico"}]}'),
                       ('/var/lib/kubelet/device-plugins/kubelet.sock', '')):
        tree.write(path, text)


def add_pf_for_doctor(tree: Tree, folder: pathlib.Path, address: str) -> None:
    tree.write(f'/sys/bus/pci/devices/{address}/config', config_with(0x10, 8, 0x19))  # SR-IOV, with ARI
    netdev, = os.listdir(folder / 'net')
    rdma, = os.listdir(folder / 'infiniband')
    tree.write(f'/sys/class/net/{netdev}/mtu', '9000\n')
    tree.write(f'/sys/class/infiniband/{rdma}/fw_ver', '28.41.1000\n')
    of_vf = folder / 'virtfn0/infiniband'
    for device in [rdma, *(os.listdir(of_vf) if of_vf.exists() else [])]:
        port = f'/sys/class/infiniband/{device}/ports/1'
        for index, kind in enumerate(('IB/RoCE v1', 'RoCE v2')):
            tree.write(f'{port}/gids/{index}', 'fe80:0000:0000:0000:0000:0000:0000:0001\n')
            tree.write(f'{port}/gid_attrs/types/{index}', kind + '\n')
            tree.write(f'{port}/gid_attrs/ndevs/{index}', netdev + '\n')
    for of in ('all', netdev):
        for name in ('rp_filter', 'arp_ignore', 'arp_announce'):
            tree.write(f'/proc/sys/net/ipv4/conf/{of}/{name}', '2\n')
    for side in ('roce_rp', 'roce_np'):
        for priority in range(8):
            tree.write(f'/sys/class/net/{netdev}/ecn/{side}/enable/{priority}', '1\n')


def add_processes(tree: Tree) -> None:
    names = {'self': 'railctl'} | {str(i): 'training' for i in range(1, PROCESSES)} | {str(PROCESSES): 'containerd'}
    for pid, name in names.items():
        tree.write(f'/proc/{pid}/comm', name + '\n')
        tree.link(f'/proc/{pid}/ns/net', 'net:[4026531840]')
        tree.link(f'/proc/{pid}/ns/pid', 'pid:[4026531836]')
    limits = 'Max locked memory         unlimited            unlimited            bytes\n'
    tree.write(f'/proc/{PROCESSES}/limits', limits)
    tree.write('/proc/sys/kernel/osrelease', '6.1.0-44-amd64\n')
