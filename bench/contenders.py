"""Who is measured: something that attaches devices to a pod and detaches them.

Namespaces that stand for their pods are /run/netns/bench-0, bench-1, ...
"""
import dataclasses
import json
from typing import Protocol

from pod_state import MTU, PodLink
from runner import Awaited, Runner
from series import IP_BATCH, Failed, Part

IFNAME = 'net1'
TABLE = 100
PATH = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'}


@dataclasses.dataclass
class Device:
    netdev: str  # name on the host
    bdf: str
    pf: str
    vf: int


@dataclasses.dataclass
class Rail:
    """One VF and where it goes: rails are 10.100.0.0/24 and 10.200.0.0/24."""
    device: Device
    number: int
    link: PodLink

    @property
    def vlan(self) -> int:
        return 100 * (self.number + 1)


class Contender(Protocol):
    name: str
    netns: str
    prefix: list[str]      # every process runs under this command
    links: list[PodLink]   # what the pod has after add(); none: nothing to check

    def add(self, pod: str) -> list[Part]: ...
    def delete(self, pod: str) -> list[Part]: ...


def base_name(path: str) -> str:
    return path.rsplit('/', 1)[-1]


class Program:
    """Without JSON: the baseline, and /bin/true for what a process costs."""

    def __init__(self, runner: Runner, name: str, netns: str, path: str, arguments: list[str], links: list[PodLink]) -> None:
        self.name, self.netns, self.links = name, netns, links
        self.prefix: list[str] = []
        self._runner, self._line = runner, [path, *arguments]

    def add(self, pod: str) -> list[Part]:
        return self._run('add')

    def delete(self, pod: str) -> list[Part]:
        return self._run('del')

    def _run(self, command: str) -> list[Part]:
        path, *arguments = [*self.prefix, self._line[0], command, *self._line[1:]]
        ran = self._runner.run(path, arguments)
        return [Part(base_name(self._line[0]), ran.ms[0], ran.cpu_ms[0])]


class Chain:
    """CNI plugins as a container runtime runs them: one after the other for ADD, each with the result of the one
    before as prevResult, in reverse order for DEL, each with ADD's result. What the runtime itself does with JSON
    between two plugins is not part of the cost."""

    def __init__(self, runner: Runner, name: str, netns: str, plugins: list[tuple[str, dict]], links: list[PodLink],
                 network: str = 'bench', ifname: str = IFNAME, root: str = '', args: str = '') -> None:
        self.name, self.netns = name, netns
        self.links = [dataclasses.replace(link) for link in links]
        self.prefix: list[str] = []
        self._runner, self._plugins, self._network = runner, plugins, network
        cni_path = ':'.join(dict.fromkeys(path.rsplit('/', 1)[0] for path, _ in plugins))
        self._environment = {**PATH, 'CNI_NETNS': netns, 'CNI_IFNAME': ifname, 'CNI_PATH': cni_path}
        self._environment |= {'RAILHEAD_ROOT': root} if root else {}
        self._environment |= {'CNI_ARGS': args} if args else {}
        self._result: dict | None = None

    def add(self, pod: str) -> list[Part]:
        self._result, parts = None, []
        for path, config in self._plugins:
            part, output = self._run('ADD', pod, path, config)
            parts.append(part)
            self._result = json.loads(output)
        if len(self.links) == 1 and self._result:
            self.links[0].address = next((ip['address'] for ip in self._result.get('ips', [])), 'none')
        return parts

    def delete(self, pod: str) -> list[Part]:
        return [self._run('DEL', pod, path, config)[0] for path, config in reversed(self._plugins)][::-1]

    def _run(self, command: str, pod: str, path: str, config: dict) -> tuple[Part, str]:
        config = config | {'cniVersion': '1.0.0', 'name': self._network}
        if self._result is not None:
            config['prevResult'] = self._result
        program, *arguments = [*self.prefix, path]
        environment = self._environment | {'CNI_COMMAND': command, 'CNI_CONTAINERID': pod}
        try:
            ran = self._runner.run(program, arguments, environment, json.dumps(config))
        except Failed as error:
            raise Failed(f'{command}: {error}') from None
        return Part(base_name(path), ran.ms[0], ran.cpu_ms[0]), ran.output


class Chains:
    """One chain after the other for one pod; the parts of a plugin are summed."""

    def __init__(self, name: str, chains: list[Chain]) -> None:
        self.name, self.netns, self.prefix = name, chains[0].netns, []
        self.links = [link for chain in chains for link in chain.links]
        self._chains = chains

    def add(self, pod: str) -> list[Part]:
        return self._sum([chain.add(pod) for chain in self._chains])

    def delete(self, pod: str) -> list[Part]:
        return self._sum([chain.delete(pod) for chain in reversed(self._chains)])

    @staticmethod
    def _sum(costs: list[list[Part]]) -> list[Part]:
        return [Part(same[0].name, sum(one.ms for one in same), sum(one.cpu_ms for one in same))
                for same in zip(*costs)]


def host_device(runner: Runner, name: str, netns: str, peers: str, scratch: str, move: dict, ipam: dict,
                link: PodLink, network: str) -> Chain:
    """The result of railhead by the standard plugins: address and route by host-device with host-local, MTU and ARP
    settings by tuning, a table by source address by sbr."""
    conf = f'net.ipv4.conf.{link.name}.'
    sysctl = {conf + 'arp_ignore': '1', conf + 'arp_announce': '2', conf + 'rp_filter': '2'}
    tuning = {'type': 'tuning', 'dataDir': f'{scratch}/tuning', 'mtu': MTU, 'sysctl': sysctl}
    plugins = [(f'{peers}/host-device', {'type': 'host-device', 'ipam': ipam} | move), (f'{peers}/tuning', tuning),
               (f'{peers}/sbr', {'type': 'sbr'})]
    return Chain(runner, name, netns, plugins, [link], network, link.name)


def host_local(data: str, link: PodLink) -> dict:
    base = link.subnet.rsplit('.', 1)[0]
    one = {'subnet': link.subnet, 'rangeStart': base + '.100', 'rangeEnd': base + '.199', 'gateway': link.gateway}
    return {'type': 'host-local', 'dataDir': data, 'ranges': [[one]], 'routes': [{'dst': link.route}]}


class IpBatch:
    """The bare kernel for all rails: one `ip -batch` on the host, one in the pod, `rdma -batch` where soft RoCE is
    wanted, then waiting for carrier and GIDs as ADD does."""
    name = IP_BATCH
    netns = '/run/netns/bench-0'
    FIRST_HOST = 210  # addresses that no fabric of the benchmark hands out

    def __init__(self, runner: Runner, rails: list[Rail], soft_roce: bool) -> None:
        self.links, self.prefix = [rail.link for rail in rails], []
        self._runner, self._rails, self._soft_roce = runner, rails, soft_roce

    def add(self, pod: str) -> list[Part]:
        host = [f'link set dev {rail.device.pf} vf {rail.device.vf} vlan {rail.vlan}' for rail in self._rails]
        host += [f'link set dev {rail.device.netdev} netns bench-0 name {rail.link.name}' for rail in self._rails]
        parts = [self._host(host), self._pod(self._pod_lines())]
        if self._soft_roce:
            parts.append(self._rdma([f'link add rxeb{i} type rxe netdev {link.name}' for i, link in enumerate(self.links)]))
        awaited = [Awaited(link.name, f'rxeb{i}' if self._soft_roce else '', self._address(i))
                   for i, link in enumerate(self.links)]
        return [*parts, Part('carrier and GID', self._runner.wait(self.netns, awaited))]

    def delete(self, pod: str) -> list[Part]:
        parts = [self._rdma([f'link delete rxeb{i}' for i in range(len(self.links))])] if self._soft_roce else []
        lines, vlans = [], []
        for i, rail in enumerate(self._rails):
            lines += [f'rule del from {self._address(i)} table {TABLE + i}', f'rule del oif {rail.link.name} table {TABLE + i}',
                      f'link set dev {rail.link.name} netns 1 name {rail.device.netdev}']
            vlans.append(f'link set dev {rail.device.pf} vf {rail.device.vf} vlan 0')
        return [*parts, self._pod(lines), self._host(vlans)]

    def _address(self, index: int) -> str:
        return f"{self.links[index].subnet.rsplit('.', 1)[0]}.{self.FIRST_HOST + index}"

    def _pod_lines(self) -> list[str]:
        lines = []
        for i, link in enumerate(self.links):
            dev, src, table = f'dev {link.name}', f'src {self._address(i)}', TABLE + i
            through = f'route add {link.route} via {link.gateway} {dev} {src}'
            lines += [f'link set {dev} mtu {MTU} addrgenmode none', f'address add {self._address(i)}/24 {dev}',
                      f'link set {dev} up', f'route add {link.subnet} {dev} scope link {src} table {table}',
                      f'{through} table {table}', f'{through} metric {20000 + table}',
                      f'rule add from {self._address(i)} priority 1000 table {table}',
                      f'rule add oif {link.name} priority 1001 table {table}']
        return lines

    def _host(self, lines: list[str]) -> Part:
        return self._run('host batch', '/sbin/ip', ['-batch', '-'], lines)

    def _pod(self, lines: list[str]) -> Part:
        return self._run('pod batch', '/sbin/ip', ['-n', 'bench-0', '-batch', '-'], lines)

    def _rdma(self, lines: list[str]) -> Part:
        arguments = ['--net=/run/netns/bench-0', 'rdma', '--batch', '-']
        return self._run('rdma batch', '/usr/bin/nsenter', arguments, lines)

    def _run(self, name: str, path: str, arguments: list[str], lines: list[str]) -> Part:
        ran = self._runner.run(path, arguments, PATH, '\n'.join(lines) + '\n')
        return Part(name, ran.ms[0], ran.cpu_ms[0])
