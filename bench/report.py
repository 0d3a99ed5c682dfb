#!/usr/bin/python3 -B
"""report.py - tables of what was measured, and the budgets.

usage: report.py [--no-host] [--no-guest] [--no-node] [--no-ipam] FILE...
exit status: 0; 1 a figure of a part that is not left out was not measured; 2 wrong command line.
"""
import argparse
import sys

from budgets import ALONE, COMPUTING, FAILED, LISTING, SCRAPING, Verdict, verdicts
from series import BARE, DAEMON, IP_BATCH, ONE_ENTRY, RAILHEAD, SAME_TENANT, TRUE, Failed, Record, Series


def names(record: Record, group: str) -> list[str]:
    return list(dict.fromkeys(series.who for series in record.of(group)))


def spread(series: Series | None) -> str:
    """"   12.34 (  11.90..  15.02)"."""
    return f'{series.median():8.2f} ({min(series.values):7.2f}..{max(series.values):7.2f})' if series else ' ' * 26


def relative(series: Series | None, base: Series | None) -> str:
    return f'{series.median() / base.median():6.2f}x' if series and base else ' ' * 7


def startup_table(record: Record, group: str, title: str) -> str:
    base = record.find(group, TRUE, 'start-up')
    if not base:
        return ''
    table = f"{title} (n = {len(base.values)})\n  {'':22} {'ms: median (min..max)':>26} {'above true':>12} {'size MB':>9}\n"
    for who in names(record, group):
        time, size = record.find(group, who, 'start-up'), record.find(group, who, 'size')
        if time:
            table += f'  {who:22} {spread(time)} {time.median() - base.median():+12.2f}'
            table += (f' {size.median():9.2f}' if size else '') + '\n'
    return table + '\n'


def attach_table(record: Record, group: str, title: str, base: str = BARE, base_title: str = 'x bare') -> str:
    base_add, base_del = record.find(group, base, 'ADD'), record.find(group, base, 'DEL')
    if not base_add:
        return ''
    table = f'{title} (n = {len(base_add.values)})\n'
    table += (f"  {'':30} {'ADD ms: median (min..max)':>26} {base_title:>7} {'CPU ms':>7} {'DEL ms: median (min..max)':>26} "
              f"{base_title:>7} {'peak MB':>8}\n")
    for who in names(record, group):
        add, delete, cpu, peak = (record.find(group, who, what) for what in ('ADD', 'DEL', 'ADD CPU', 'peak memory'))
        table += f'  {who:30} {spread(add)} {relative(add, base_add)} ' + (f'{cpu.median():7.2f}' if cpu else ' ' * 7)
        table += f' {spread(delete)} {relative(delete, base_del)}' + (f' {peak.median():8.2f}' if peak else '') + '\n'
    return table + '\n'


def one_line(series: Series | None, text: str) -> str:
    """`text` with "{n}", "{spread}" and "{median}"."""
    if not series:
        return ''
    return text.format(n=len(series.values), spread=spread(series), median=f'{series.median():.2f}') + '\n\n'


def percentile_table(series: list[Series], title: str) -> str:
    if not series:
        return ''
    table = f"{title}\n  {'':55} {'p50':>9} {'p99':>9} {'max':>9}\n"
    for one in series:
        table += (f'  {one.who:24} {one.what:30} {one.median():9.2f} {one.percentile(0.99):9.2f} {max(one.values):9.2f} '
                  f'{one.unit:3} (n = {len(one.values)})\n')
    return table + '\n'


def node_table(record: Record) -> str:
    devices = record.find('node', DAEMON, 'devices')
    title = 'railheadd on a made-up node' + (f' with {devices.median():.0f} VFs' if devices else '')
    return percentile_table([series for series in record.of('node') if series is not devices], title)


def rtnl_table(record: Record, group: str, title: str) -> str:
    base = record.find(group, COMPUTING, 'a change of a link')
    if not base:
        return ''

    def times(name: str, series: Series) -> str:
        return f'  {name:30} {series.median():9.1f} {series.percentile(0.99):9.1f} {max(series.values):9.1f}'

    table = f"{title} (n = {len(base.values)})\n  {'us, beside':30} {'p50':>9} {'p99':>9} {'max':>9} {'x p99':>10}\n"
    for who in (ALONE, COMPUTING, LISTING, SCRAPING):
        if change := record.find(group, who, 'a change of a link'):
            table += times(who, change) + f' {change.percentile(0.99) / base.percentile(0.99):9.2f}x\n'
    for asked in record.of(group):
        if asked.who == 'one question':
            table += times(asked.what, asked) + '\n'
    return table + '\n'


def tables(record: Record) -> str:
    """One for each group that was measured."""
    guest = 'in the guest (emulated)'
    nccl = 'The NCCL configuration in an ADD of eight VFs beside the kernel (n = {n})\n  {spread} ms'
    return ''.join([
        startup_table(record, 'startup', 'Start-up on this machine: CNI_COMMAND=VERSION'),
        attach_table(record, 'stand-ins', 'Stand-ins (veth) in namespaces on this machine'),
        one_line(record.find('nccl', RAILHEAD, 'ADD'), nccl),
        one_line(record.find('daemon', DAEMON, 'resident'), 'railheadd, registered with kubelet, 16 VFs: {median} MB resident'),
        node_table(record),
        rtnl_table(record, 'rtnl', 'Changes of a link beside /metrics/nics on the made-up node'),
        percentile_table(record.of('ipam'), 'IPAM plugins alone, as processes, state on a disk'),
        startup_table(record, 'guest-startup', f'Start-up {guest}'),
        attach_table(record, 'vf', f'VFs with VLAN {guest}'),
        attach_table(record, 'vf-rxe', f'VFs with VLAN and soft RoCE {guest}'),
        attach_table(record, 'rails', f'Eight VFs of a pod {guest}', IP_BATCH, 'x batch'),
        attach_table(record, 'rails-rxe', f'Eight VFs with soft RoCE {guest}', IP_BATCH, 'x batch'),
        attach_table(record, 'journal', f'One VF, by the length of the journal, {guest}', ONE_ENTRY, 'x 1'),
        attach_table(record, 'tenant-one', f'One VF, by whose it was, {guest}', SAME_TENANT, 'x same'),
        attach_table(record, 'tenant-eight', f'Eight VFs, by whose they were, {guest}', SAME_TENANT, 'x same'),
        rtnl_table(record, 'guest-rtnl', f'Changes of a link beside /metrics/nics {guest}')])


def show(judged: list[Verdict]) -> str:
    return 'Budgets\n' + ''.join(f'  {one.outcome:7} {one.budget}\n          {one.figures}\n' for one in judged)


def main() -> int:
    parser = argparse.ArgumentParser(description='Tables and budgets of what was measured.')
    for part in ('host', 'guest', 'node', 'ipam'):
        parser.add_argument(f'--no-{part}', dest=part, action='store_false', help='without that part')
    parser.add_argument('files', nargs='+')
    options, record = parser.parse_args(), Record()
    try:
        for file in options.files:
            record.read(file)
    except Failed as error:
        print(f'bench/report.py: {error}', file=sys.stderr)
        return 1
    judged = verdicts(record, options.host, options.guest, options.node, options.ipam)
    print(tables(record) + show(judged), end='')
    if all(one.outcome != FAILED for one in judged):
        return 0
    print('bench/report.py: some figures were not measured: see above', file=sys.stderr)
    return 1


if __name__ == '__main__':
    sys.exit(main())
