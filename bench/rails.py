"""All VFs of a pod in one ADD beside two `ip -batch` and the standard plugins one after the other; what conflict
detection adds; what a new tenant costs; what a long journal costs. Contenders take turns, as in attach.py.
"""
import argparse
import json
import os
import pathlib
import shutil

from contenders import IFNAME, Chain, Chains, IpBatch, Rail, host_device, host_local
from runner import Runner
from series import CHAIN, IP_BATCH, MANY_ENTRIES, ONE_ENTRY, OTHER_TENANT, RAILHEAD, SAME_TENANT, Failed, Record
from turn import take_turn

NETWORK = 'rails'
STATE = pathlib.Path('/run/railhead')
FOLDERS = ('attachments', 'locks')  # of the journal
MANY = 1000


def railhead(options: argparse.Namespace, runner: Runner, rails: list[Rail], probe_ms: int | None = 0, programs: str = '',
             namespace: str = '') -> Chain:
    """`probe_ms` None: conflict detection as the fabric has it. `namespace`: for a pod of that one."""
    config = {'type': RAILHEAD, 'linkTimeoutSeconds': 120, 'devices': [rail.device.bdf for rail in rails]}
    if probe_ms is not None:
        config['conflictProbeMs'] = probe_ms
    args = f'IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME=train' if namespace else ''
    plugins = [(f'{programs or options.programs}/railhead', config)]
    links = [rail.link for rail in rails]
    return Chain(runner, RAILHEAD, '/run/netns/bench-1', plugins, links, NETWORK, IFNAME, args=args)


def host_device_chains(options: argparse.Namespace, runner: Runner) -> Chains:
    def chain(rail: Rail) -> Chain:
        ipam = host_local(f'{options.scratch}/host-local-{rail.number}', rail.link)
        return host_device(runner, CHAIN, '/run/netns/bench-2', options.peers, options.scratch,
                           {'pciBusID': rail.device.bdf}, ipam, rail.link, NETWORK)
    return Chains(CHAIN, [chain(rail) for rail in options.vf])


def add_phases(record: Record, group: str, pod: str) -> None:
    """What railhead itself says of the ADD that has just ended."""
    last = json.loads((STATE / 'attach.log').read_text().splitlines()[-1])
    if last['containerId'] != pod:
        raise Failed(f'the log of attach timings does not end with the ADD of {pod}')
    for phase, us in last['phasesUs'].items():
        record.add(group, f'- {phase}', 'ADD', 'ms', us / 1000)


def measure_rails(options: argparse.Namespace, runner: Runner, record: Record) -> None:
    turns = [(IpBatch(runner, options.vf, options.soft_roce), IP_BATCH), (railhead(options, runner, options.vf), RAILHEAD)]
    if options.peers:
        turns.append((railhead(options, runner, options.vf, None), 'railhead, conflict detection'))
        turns.append((host_device_chains(options, runner), CHAIN))
    for number in range(options.rounds + 1):
        for which, (contender, who) in enumerate(turns):
            pod = f'rails-{number}-{which}'
            after = (lambda: add_phases(record, options.group, pod)) if who == RAILHEAD else (lambda: None)
            take_turn(runner, contender, who, pod, options.group, record if number else None, after)


def measure_before(options: argparse.Namespace, runner: Runner, record: Record) -> None:
    """Railhead beside an earlier build of it and nobody else, who begins changing with each round."""
    turns = [(railhead(options, runner, options.vf), RAILHEAD),
             (railhead(options, runner, options.vf, programs=options.before), 'railhead, before')]
    for number in range(options.rounds + 1):
        for contender, who in turns[::-1 if number % 2 else 1]:
            pod = f"rails-{number}{'-b' if who != RAILHEAD else ''}"
            take_turn(runner, contender, who, pod, options.group, record if number else None)


def measure_tenants(options: argparse.Namespace, runner: Runner, record: Record) -> None:
    """Pods of two namespaces in turn, two pods of each: the first gets the devices of the other namespace, which are
    made anew for it. The fabric must permit any device to them."""
    tenants = [railhead(options, runner, options.vf, None, namespace=namespace) for namespace in ('red', 'blue')]
    for number in range(options.rounds + 1):
        for who in (OTHER_TENANT, SAME_TENANT):
            pod = f"tenant-{number}{'-s' if who == SAME_TENANT else ''}"
            take_turn(runner, tenants[number % 2], who, pod, options.group, record if number else None)


def measure_journal(options: argparse.Namespace, runner: Runner, record: Record) -> None:
    """The first device alone, with 1 and with 1,000 attachments of other pods in the journal, which must be empty and
    is afterwards."""
    contender = railhead(options, runner, options.vf[:1])
    contender.add('template')
    entry = (STATE / f'attachments/template/{NETWORK}@{IFNAME}.json').read_text()
    contender.delete('template')
    for name, entries in ((ONE_ENTRY, 1), (MANY_ENTRIES, MANY)):
        for i in range(entries):
            write_entry(entry, options.vf[0].device.bdf, i)
        shelve(name)
    for number in range(options.rounds + 1):
        # Who begins changes, so that neither is always the one after the other.
        for name in (ONE_ENTRY, MANY_ENTRIES)[::-1 if number % 2 else 1]:
            shelve(name, back=True)
            take_turn(runner, contender, name, f'journal-{number}', options.group, record if number else None)
            shelve(name)
    for name in (ONE_ENTRY, MANY_ENTRIES):
        for folder in FOLDERS:
            shutil.rmtree(STATE / f'{folder}.{name}')


def shelve(name: str, back: bool = False) -> None:
    """The two directories of the journal have another name while they are not in use."""
    for folder in FOLDERS:
        paths = [STATE / folder, STATE / f'{folder}.{name}']
        os.rename(*(paths[::-1] if back else paths))


def write_entry(entry: str, bdf: str, number: int) -> None:
    """The real entry of the device `bdf`, under another pod's name and device."""
    device = f'{1 + number // 256:04x}:{number % 256:02x}:{number % 32:02x}.{number % 8}'
    container = f'other-{number}'
    if not all(f'"{name}"' in entry for name in (bdf, 'template')):
        raise Failed(f'the journal entry of {bdf} names neither it nor its container: {entry}')
    pod = STATE / 'attachments' / container
    for folder in (pod, STATE / 'locks'):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = pod / f'{NETWORK}@{IFNAME}.json'
    file.write_text(entry.replace(f'"{bdf}"', f'"{device}"').replace('"template"', f'"{container}"'))
    (STATE / 'locks' / f'{device}.lock').write_text(f'{container}/{file.name}\n')
