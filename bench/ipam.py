#!/usr/bin/python3 -B
"""ipam.py - measures the IPAM plugins alone, as processes: on empty and on full pools, for many rails at once, and many
of them at once; bench/ipam.sh calls it. See --help.

Both plugins keep their state on the same disk. host-local syncs nothing, railhead-ipam every commit; beside them the
disk alone: as many synced writes as the commits need.
exit status: 0; 1 something could not be measured; 2 wrong command line.
"""
import argparse
import json
import os
import sys
import time

from runner import Ran, Runner
from series import DISK_ALONE, HOST_LOCAL, IPAM, Failed, Record

GROUP = 'ipam'
RAILS = 8
AT_ONCE = 32
LINKS_PER_ADD = 1000


class Plugin:
    """One plugin with a state of its own."""

    def __init__(self, runner: Runner, who: str, path: str, root: str, ipam: dict) -> None:
        self.who, self._runner, self._path = who, runner, path
        os.makedirs(root, exist_ok=True)
        self._config = {'cniVersion': '1.0.0', 'name': 'bench', 'type': 'none', 'ipam': ipam}
        self._environment = {'CNI_IFNAME': 'net1', 'CNI_NETNS': '/proc/self/ns/net', 'CNI_PATH': '/none', 'RAILHEAD_ROOT': root}

    def run(self, command: str, container: str, count: int = 1, at_once: int = 1, ipam: dict | None = None) -> Ran:
        environment = self._environment | {'CNI_COMMAND': command, 'CNI_CONTAINERID': container}
        config = self._config | ({'ipam': ipam} if ipam else {})
        return self._runner.run(self._path, [], environment, json.dumps(config), count, at_once)


class Measurement:
    """All of it, into a record."""

    def __init__(self, options: argparse.Namespace, runner: Runner, record: Record) -> None:
        self._options, self._runner, self._record = options, runner, record

    def run(self) -> None:
        self._by_fill('ADD, empty pool', 'empty', 0)
        self._by_fill('ADD, 900 taken', 'taken', self._options.taken)
        self._crowded()
        self._eight_rails()
        self._burst()
        self._pods()

    def _ours(self, name: str, ipam: dict) -> Plugin:
        return Plugin(self._runner, IPAM, f'{self._options.programs}/railhead-ipam', f'{self._options.disk}/ours-{name}',
                      {'type': IPAM} | ipam)

    def _both(self, name: str, subnet: str) -> list[Plugin]:
        root = f'{self._options.disk}/theirs-{name}'
        theirs = {'type': HOST_LOCAL, 'dataDir': root, 'ranges': [[{'subnet': subnet}]]}
        return [self._ours(name, {'subnet': subnet}),
                Plugin(self._runner, HOST_LOCAL, f'{self._options.peers}/host-local', root, theirs)]

    def _rails(self, name: str) -> Plugin:
        return self._ours(name, {'links': [{'ifname': f'rail{i}', 'subnet': f'10.{40 + i}.0.0/16'} for i in range(RAILS)]})

    def _by_fill(self, what: str, name: str, taken: int) -> None:
        """One after the other by turns, so that both have the same disk."""
        both = self._both(name, '10.20.0.0/20')
        for plugin in both if taken else []:
            plugin.run('ADD', 'taken{n}', taken)
        for i in range(self._options.rounds):
            for plugin in both:
                self._record.add(GROUP, plugin.who, what, 'ms', *plugin.run('ADD', f'round{i}').ms)
                plugin.run('DEL', f'round{i}')

    def _crowded(self) -> None:
        """The fill is made by few processes with many addresses each; host-local would take hours."""
        subnet = '10.16.0.0/12'
        ours = self._ours('crowded', {'subnet': subnet})
        for first in range(0, self._options.crowd, LINKS_PER_ADD):
            count = min(LINKS_PER_ADD, self._options.crowd - first)
            links = [{'ifname': f'c{i}', 'subnet': subnet} for i in range(count)]
            ours.run('ADD', f'crowd{first}', ipam={'type': IPAM, 'links': links})
        for i in range(self._options.rounds):
            self._record.add(GROUP, IPAM, 'ADD, 100,000 taken of a /12', 'ms', *ours.run('ADD', f'round{i}').ms)

    def _eight_rails(self) -> None:
        rails = self._rails('rails')
        rails.run('ADD', 'first')
        for i in range(self._options.rounds):
            self._record.add(GROUP, IPAM, 'ADD, eight rails', 'ms', *rails.run('ADD', f'round{i}').ms)

    def _burst(self) -> None:
        """In parts by turns: what the one leaves to the disk, the other has to wait for, too."""
        both, parts = self._both('burst', '10.20.0.0/16'), 4
        count = max(1, AT_ONCE * self._options.burst_rounds // parts)
        for part in range(parts):
            for plugin in both:
                ran = plugin.run('ADD', f'p{part}-{{n}}', count, AT_ONCE)
                self._record.add(GROUP, plugin.who, '32 at once, ADDs', '/s', count / ran.seconds)
                self._record.add(GROUP, plugin.who, 'ADD, 32 at once', 'ms', *ran.ms)

    def _pods(self) -> None:
        """By turns, too: a disk that is shared is at times ten times as slow."""
        rails, parts, ours, disk = self._rails('pods'), 8, 0.0, 0.0
        count = max(1, self._options.pods // parts)
        for part in range(parts):
            ours += rails.run('ADD', f'p{part}-{{n}}', count, AT_ONCE).seconds
            disk += synced_commits(f'{self._options.disk}/commits', count)
        self._record.add(GROUP, IPAM, '1,000 pods x 8 rails', 's', ours)
        self._record.add(GROUP, DISK_ALONE, '1,000 pods x 8 rails', 's', disk)


def synced_commits(path: str, count: int) -> float:
    """What the disk needs for as many commits: LMDB syncs the pages, then the page that names them the newest (its
    O_DSYNC descriptor), one commit after the other. So many pages of a tree does an allocation on eight rails change."""
    page = bytes(4096)
    pages, meta = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), os.open(path, os.O_WRONLY | os.O_DSYNC)
    for i in range(64):
        os.pwrite(pages, page, len(page) * i)
    start = time.perf_counter()
    for i in range(count):
        for changed in range(RAILS):
            os.pwrite(pages, page, len(page) * (2 + (i + changed) % 60))
        os.fdatasync(pages)
        os.pwrite(meta, page, len(page) * (i % 2))
    took = time.perf_counter() - start
    os.close(pages)
    os.close(meta)
    return took


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Measures railhead-ipam and host-local; bench/run.sh uses it.')
    parser.add_argument('--programs', required=True, help="directory of the project's programs")
    parser.add_argument('--peers', required=True, help='directory of the standard plugins')
    parser.add_argument('--disk', required=True, help='an empty directory on a disk')
    parser.add_argument('--out', required=True, help='file to append to')
    for name, default in (('rounds', 50), ('taken', 900), ('crowd', 100_000), ('burst-rounds', 20), ('pods', 1000)):
        parser.add_argument(f'--{name}', type=int, default=default)
    return parser.parse_args()


def main() -> int:
    options, record = parse(), Record()
    try:
        with Runner(options.programs) as runner:
            Measurement(options, runner, record).run()
        record.append_to(options.out)
    except Failed as error:
        print(f'bench/ipam.py: {error}', file=sys.stderr)
        return 1
    return 0


sys.exit(main())
