#!/usr/bin/python3 -B
"""measure.py - start-up, and ADD and DEL of all contenders; bench/host.sh and bench/guest.sh call it. See --help.

Every ADD and DEL is checked, outside of the measured time. Measurements are appended to a file of JSON lines
(series.py), which report.py shows. ADD and DEL need root and the namespaces of contenders.py.
exit status: 0; 1 something could not be measured; 2 wrong command line.
"""
import argparse
import os
import sys

from attach import measure_attach, measure_startup
from contenders import Device, Rail
from pod_state import PodLink
from rails import measure_before, measure_journal, measure_rails, measure_tenants
from runner import Runner
from series import DAEMON, Failed, Record


def named_device(text: str) -> tuple[str, Device]:
    who, _, device = text.partition('=')
    netdev, bdf, pf, vf = device.split(',')
    return who, Device(netdev, bdf, pf, int(vf))


def rail_device(text: str) -> Rail:
    netdev, bdf, pf, vf, number = text.split(',')
    net = f'10.{100 * (int(number) + 1)}.0.'
    return Rail(Device(netdev, bdf, pf, int(vf)), int(number), PodLink('', netdev, net + '0/24', net + '254', '10.0.0.0/8'))


def name_in_pod(rails: list[Rail]) -> None:
    """The names that railhead gives."""
    for i, rail in enumerate(rails):
        before = sum(other.number == rail.number for other in rails[:i])
        rail.link.name = f'rail{rail.number}' + (f'-{before}' if before else '')


def measure(options: argparse.Namespace, record: Record) -> None:
    if options.command == 'daemon':
        record.add('daemon', DAEMON, 'resident', 'MB', options.kib * 1024 / 1e6)
        return
    with Runner(options.programs) as runner:
        if options.command == 'startup':
            measure_startup(options, runner, record)
        elif options.command == 'attach':
            measure_attach(options, runner, record)
        else:
            os.makedirs(options.scratch, exist_ok=True)
            name_in_pod(options.vf)
            (measure_journal if options.journal else measure_tenants if options.tenants else
             measure_before if options.before else measure_rails)(options, runner, record)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Measures start-up, ADD and DEL; bench/run.sh uses it.')
    commands = parser.add_subparsers(dest='command', required=True)
    daemon = commands.add_parser('daemon', help="records railheadd's resident memory")
    daemon.add_argument('kib', type=int)
    startup = commands.add_parser('startup', help='start-up time and size of programs')
    startup.add_argument('paths', nargs='+')
    attach = commands.add_parser('attach', help='ADD and DEL of all contenders')
    attach.add_argument('--root', default='', help='RAILHEAD_ROOT')
    attach.add_argument('--vlan', type=int, help='that the VFs get')
    attach.add_argument('--by-bdf', action='store_true', help='host-device looks for the PCI address')
    attach.add_argument('--device', type=named_device, action='append', default=[],
                        help='WHO=NETDEV,BDF,PF,VF; WHO: railhead, bare, host-device')
    rails = commands.add_parser('rails', help='ADD and DEL of several VFs at once')
    rails.add_argument('--vf', type=rail_device, action='append', required=True, help='NETDEV,BDF,PF,VF,RAIL')
    rails.add_argument('--before', default='', help='programs of an earlier build, to compare with them alone')
    rails.add_argument('--journal', action='store_true', help='instead: the first VF with a short and a long journal')
    rails.add_argument('--tenants', action='store_true', help='instead: for pods of two namespaces in turn')
    for command in (attach, rails):
        command.add_argument('--peers', default='', help='directory of the standard plugins')
        command.add_argument('--scratch', required=True, help='directory for state')
        command.add_argument('--soft-roce', action='store_true', help='the rails have soft RoCE')
    for command in (startup, attach, rails):
        command.add_argument('--group', required=True, help='name of the measurement')
        command.add_argument('--rounds', type=int, required=True, help='measured rounds')
        command.add_argument('--programs', required=True, help="directory of the project's programs")
    for command in (daemon, startup, attach, rails):
        command.add_argument('--out', required=True, help='file to append to')
    return parser.parse_args()


def main() -> int:
    options, record = parse(), Record()
    try:
        measure(options, record)
        record.append_to(options.out)
    except Failed as error:
        print(f'bench/measure.py: {error}', file=sys.stderr)
        return 1
    return 0


sys.exit(main())
