"""Start-up, and ADD and DEL of one device.

Contenders take turns (A B C A B C ...), so that whatever else the machine does meets all of them alike. One round is
not measured.
"""
import argparse
import os
import pathlib

from contenders import IFNAME, TABLE, Chain, Contender, Device, Program, host_device, host_local
from pod_state import MTU, PodLink
from runner import Runner
from series import BARE, CHAIN, HOST_LOCAL, IPAM, RAILHEAD, TRUE, Failed, Record
from turn import take_turn

BARE_ADDRESS = '10.100.0.210/24'


def measure_startup(options: argparse.Namespace, runner: Runner, record: Record) -> None:
    """Of each binary what starting it costs, and its size. The work done is CNI's VERSION."""
    calls = [(TRUE, TRUE, {}, '')]
    calls += [(path.rsplit('/', 1)[-1], path, {'CNI_COMMAND': 'VERSION'}, '{"cniVersion":"1.0.0"}') for path in options.paths]
    for number in range(options.rounds + 1):
        for name, path, environment, text in calls:
            ran = runner.run(path, [], environment, text)
            if name != TRUE and 'supportedVersions' not in ran.output:
                raise Failed(f'{path} does not answer VERSION: {ran.output}')
            if number:
                record.add(options.group, name, 'start-up', 'ms', ran.ms[0])
    for name, path, *_ in calls[1:]:
        record.add(options.group, name, 'size', 'MB', os.path.getsize(path) / 1e6)


def make_contenders(options: argparse.Namespace, runner: Runner) -> list[Contender]:
    """In the order in which they are measured: those that there are devices and programs for."""
    programs, peers, scratch, devices = options.programs, options.peers, options.scratch, dict(options.device)
    netns = (f'/run/netns/bench-{i}' for i in range(5))

    def link(device: Device, address: str = '') -> PodLink:
        return PodLink(IFNAME, device.netdev, '10.100.0.0/24', '10.100.0.254', '10.96.0.0/11', address)

    def ours(name: str, config: dict, links: list[PodLink]) -> Chain:
        return Chain(runner, name, next(netns), [(f'{programs}/{name}', config)], links, root=options.root)

    # A rail without device: allocation and release alone.
    made: list[Contender] = [Program(runner, TRUE, '', TRUE, [], []),
                             ours(IPAM, {'type': IPAM, 'ipam': {'type': IPAM, 'rail': 'rail0'}}, [])]
    if peers:
        ipam = host_local(f'{scratch}/host-local-alone', PodLink(IFNAME, '', '10.100.0.0/24', '10.100.0.254', '10.96.0.0/11'))
        made.append(Chain(runner, HOST_LOCAL, next(netns), [(f'{peers}/host-local', {'type': HOST_LOCAL, 'ipam': ipam})], []))
    if device := devices.get('bare'):
        made.append(bare(options, runner, device, link(device, BARE_ADDRESS), next(netns)))
    if device := devices.get('railhead'):
        made.append(ours(RAILHEAD, {'type': RAILHEAD, 'deviceID': device.bdf, 'linkTimeoutSeconds': 120}, [link(device)]))
    if peers and (device := devices.get('host-device')):
        move = {'pciBusID': device.bdf} if options.by_bdf else {'device': device.netdev}
        ipam = host_local(f'{scratch}/host-local-chain', link(device))
        made.append(host_device(runner, CHAIN, next(netns), peers, scratch, move, ipam, link(device), 'bench'))
    return made


def bare(options: argparse.Namespace, runner: Runner, device: Device, link: PodLink, netns: str) -> Program:
    arguments = {'netns': netns, 'ifname': link.name, 'netdev': device.netdev, 'address': BARE_ADDRESS,
                 'gateway': link.gateway, 'route': link.route, 'table': TABLE, 'mtu': MTU}
    if options.vlan:
        arguments |= {'pf': device.pf, 'vf': device.vf, 'vlan': options.vlan}
    if options.soft_roce:
        arguments |= {'rxe': 'rxe_bare'}
    line = [f'{name}={value}' for name, value in arguments.items()]
    return Program(runner, BARE, netns, f'{options.programs}/bare_attach', line, [link])


def measure_attach(options: argparse.Namespace, runner: Runner, record: Record) -> None:
    os.makedirs(options.scratch, exist_ok=True)
    contenders = make_contenders(options, runner)
    for number in range(options.rounds + 1):
        for contender in contenders:
            take_turn(runner, contender, contender.name, f'round-{number}', options.group, record if number else None)
    for contender in contenders:
        measure_peak(options, contender, record)


def measure_peak(options: argparse.Namespace, contender: Contender, record: Record) -> None:
    """The largest process of an ADD: of a chain of plugins, and of their children."""
    file = pathlib.Path(options.scratch, 'peak')
    file.unlink(missing_ok=True)
    contender.prefix = [f'{options.programs}/peak_memory', str(file)]
    contender.add('peak')
    contender.prefix = []
    contender.delete('peak')
    record.add(options.group, contender.name, 'peak memory', 'MB', max(map(int, file.read_text().split())) * 1024 / 1e6)
