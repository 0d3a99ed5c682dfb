#!/usr/bin/python3 -B
"""node.py - railheadd and railctl doctor with many VFs, as processes; bench/node.sh calls it. See --help.

Measurements are appended to a file of JSON lines (series.py), which report.py shows; all are of the group "node".
exit status: 0; 1 something could not be measured; 2 wrong command line.
"""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import node_tree
from runner import Ran, Runner
from series import BARE_READING, DAEMON, LATE_POOL, Failed, Record

GROUP = 'node'
PATIENCE = 60
KUBELET = '/k'  # paths of sockets are short


@contextlib.contextmanager
def started(command: list[str], log: str, environment: dict[str, str]) -> Iterator[subprocess.Popen]:
    """A process with its output in a file; it ends with the block. An error says what it said last."""
    with open(log, 'wb') as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
    try:
        yield process
    except Failed as error:
        raise Failed(f'{error}; {command[0]} said last: {pathlib.Path(log).read_text()[-600:]}') from None
    finally:
        process.terminate()
        process.wait()


class Kubelet:
    """The kubelet stand-in of the tests, asked as its own command line does (tests/support/kubelet/control.h)."""

    def __init__(self, directory: str) -> None:
        self._path = directory + '/control.sock'
        wait_for(lambda: os.path.exists(self._path), 'the kubelet stand-in does not serve')

    def ask(self, command: str, **request: object) -> object:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._path)
            connection.sendall(json.dumps({'command': command, 'resource': node_tree.RESOURCE} | request).encode())
            connection.shutdown(socket.SHUT_WR)
            answer = json.loads(b''.join(iter(lambda: connection.recv(1 << 16), b'')))
        if not answer['ok']:
            raise Failed(answer['error'])
        return answer['result']

    def devices(self, count: int) -> list[str]:
        """When so many are healthy."""
        return [device['id'] for device in self.ask('devices', count=count, timeout_ms=PATIENCE * 1000)]


def wait_for(condition: Callable[[], bool], otherwise: str, pause: float = 0.1) -> None:
    limit = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > limit:
            raise Failed(otherwise)
        time.sleep(pause)


class Daemon:
    """railheadd with a kubelet: what it waits for, memory, how soon a change is reported, what it costs while nothing
    happens. The tree is changed and restored."""

    def __init__(self, options: argparse.Namespace, record: Record) -> None:
        self._options, self._record, self._root = options, record, options.root
        self._who = LATE_POOL if options.late else DAEMON
        self._directory = self._root + KUBELET

    def measure(self) -> None:
        programs = self._options.programs
        os.makedirs(self._directory, exist_ok=True)
        with started([f'{programs}/kubelet-standin', 'serve', '--dir', self._directory], f'{self._root}/kubelet.log', {}):
            kubelet, start = Kubelet(self._directory), time.monotonic()
            with started([f'{programs}/railheadd', '--kubelet-dir', KUBELET], f'{self._root}/railheadd.log',
                         {'RAILHEAD_ROOT': self._root}) as daemon:
                self._measure(kubelet, daemon.pid, start)

    def _measure(self, kubelet: Kubelet, pid: int, start: float) -> None:
        ids = kubelet.devices(self._options.devices)
        self._add('start to first list', 'ms', (time.monotonic() - start) * 1e3)
        for _ in range(min(100, self._options.allocations)):
            kubelet.ask('release', ids=kubelet.ask('allocate', count=1)['devices'])
        for what, key, unit in (('resident', 'VmRSS', 'MB'), ('anonymous', 'RssAnon', 'MB'), ('threads', 'Threads', 'threads')):
            self._add(what, unit, number_in(pid, key) * (1.024e-3 if unit == 'MB' else 1))
        if not self._options.late:
            self._calls(ids)
        self._changes(kubelet)
        if self._options.idle:
            self._idle(pid)
        self._add('resident later', 'MB', number_in(pid, 'VmRSS') * 1.024e-3)

    def _add(self, what: str, unit: str, value: float) -> None:
        self._record.add(GROUP, self._who, what, unit, value)

    def _calls(self, ids: list[str]) -> None:
        plugin = next(name for name in os.listdir(self._directory) if name.startswith('railhead-'))
        command = [f'{self._options.programs}/railhead_node_bench', 'calls', '--root', self._root, '--socket',
                   f'{self._directory}/{plugin}', '--out', self._options.out, '--allocations', str(self._options.allocations),
                   '--preferences', str(self._options.preferences), *ids]
        if subprocess.run(command).returncode:
            raise Failed('the calls of kubelet have failed')

    def _changes(self, kubelet: Kubelet) -> None:
        """A VF's driver is unbound and bound again. Below another root there are no uevents: the fabric, written anew
        with what it has, takes their place; what follows is the same."""
        vf = min(pathlib.Path(self._root + '/sys/bus/pci/devices').glob('*/physfn')).parent
        driver, fabric = os.readlink(vf / 'driver'), pathlib.Path(self._root + '/etc/railhead/fabric.json')
        for i in range(2 * self._options.changes):
            if unbind := i % 2 == 0:
                (vf / 'driver').unlink()
            else:
                (vf / 'driver').symlink_to(driver)
            count, start = self._options.devices - unbind, time.monotonic()
            new = fabric.with_suffix('.new')
            new.write_bytes(fabric.read_bytes())
            new.rename(fabric)
            wait_for(lambda: len(kubelet.devices(0)) == count, 'a change of the node was not reported to kubelet', 0.001)
            self._add('change to new list', 'ms', (time.monotonic() - start) * 1e3)

    def _idle(self, pid: int) -> None:
        before, start = (cpu_seconds(pid), wakeups(pid)), time.monotonic()
        time.sleep(self._options.idle)
        seconds = time.monotonic() - start
        self._add('idle CPU', '%', 100 * (cpu_seconds(pid) - before[0]) / seconds)
        self._add('wake-ups', '/s', max(0, wakeups(pid) - before[1]) / seconds)


def number_in(pid: int | str, key: str) -> int:
    """Of /proc/PID/status."""
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith(key + ':'):
            return int(line.split()[1])
    raise Failed(f'process {pid} has no {key}')


def cpu_seconds(pid: int) -> float:
    """User and system time by the process's own clock: /proc counts in hundredths of a second, this in nanoseconds."""
    return time.clock_gettime(~pid << 3 | 2)


def wakeups(pid: int) -> int:
    """Voluntary context switches of the threads that are there."""
    count = 0
    for thread in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # one that has ended meanwhile
            count += number_in(f'{pid}/task/{thread}', 'voluntary_ctxt_switches')
    return count


def measure_doctor(options: argparse.Namespace, record: Record) -> None:
    """The command as an operator runs it, beside reading the same files. What only the kernel's sockets tell it cannot be
    asked of such a tree: four checks of DCB and the order of RDMA devices are skipped; nobody has listened to its
    switches, and neither kubelet nor railheadd runs there."""
    node_tree.add_facts_for_doctor(options.root)
    with Runner(options.programs) as runner:
        def doctor(*arguments: str) -> Ran:
            return runner.run(f'{options.programs}/railctl', ['doctor', *arguments], {'RAILHEAD_ROOT': options.root})

        read = ['bare-doctor', '--root', options.root]
        for number in range(options.rounds + 1):
            bare = json.loads(runner.run(f'{options.programs}/railhead_node_bench', read).output)
            whole, one, none = doctor('-o', 'json'), doctor('--only', 'node.modules'), doctor('--list')
            counts = json.loads(whole.output)['counts']
            if counts.get('skipped') != 8 or counts.get('failure') != 0:
                raise Failed(f'railctl doctor did not find what the made-up node has: {whole.output}')
            if number:
                record.add(GROUP, BARE_READING, 'doctor', 'ms', bare['ms'])
                record.add(GROUP, BARE_READING, "doctor's files read", 'files', bare['files'])
                record.add(GROUP, 'railctl', 'doctor', 'ms', *whole.ms)
                record.add(GROUP, 'railctl', 'doctor, one check of PFs', 'ms', *one.ms)
                record.add(GROUP, 'railctl', 'doctor --list: start and end', 'ms', *none.ms)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Measures railheadd with many VFs; bench/run.sh uses it.')
    commands = parser.add_subparsers(dest='command', required=True)
    tree = commands.add_parser('tree', help='makes the tree below an existing directory; prints its network devices')
    daemon = commands.add_parser('daemon', help='railheadd as a process, with a kubelet')
    daemon.add_argument('--allocations', type=int, default=100)
    daemon.add_argument('--preferences', type=int, default=500)
    daemon.add_argument('--changes', type=int, default=10)
    daemon.add_argument('--idle', type=int, default=60, help='seconds')
    doctor = commands.add_parser('doctor', help='railctl doctor; changes the tree')
    doctor.add_argument('--rounds', type=int, default=20)
    for command in (tree, daemon):
        command.add_argument('--vfs-per-pf', type=int, default=128)
        command.add_argument('--late', action='store_true', help='with late binding')
    for command in (daemon, doctor):
        command.add_argument('--out', required=True, help='file to append to')
    for command in (tree, daemon, doctor):
        command.add_argument('--programs', required=True, help="directory of the project's programs")
        command.add_argument('--root', required=True, help="where the node's tree is")
    return parser.parse_args()


def main() -> int:
    options, record = parse(), Record()
    try:
        if options.command == 'tree':
            bench = f'{options.programs}/railhead_node_bench'
            print(*node_tree.build(bench, options.root, options.vfs_per_pf, options.late), sep='\n')
        elif options.command == 'daemon':
            options.devices = 8 * options.vfs_per_pf
            Daemon(options, record).measure()
        else:
            measure_doctor(options, record)
        if options.command != 'tree':
            record.append_to(options.out)
    except Failed as error:
        print(f'bench/node.py: {error}', file=sys.stderr)
        return 1
    return 0


sys.exit(main())
