"""The budgets, judged by what was measured.

A budget that is missed is a result like any other; a figure that a part should have measured and did not is a failure.
"""
import dataclasses
from collections.abc import Callable

from series import (BARE, BARE_READING, CHAIN, DAEMON, DISK_ALONE, HOST_LOCAL, IP_BATCH, IPAM, LATE_POOL, MANY_ENTRIES,
                    ONE_ENTRY, RAILHEAD, TRUE, Record, Series)

MET, MISSED, FAILED = 'met', 'MISSED', 'FAILED'
# What runs beside a change of a link.
ALONE, COMPUTING = 'nothing', 'a process that computes'
LISTING, SCRAPING = 'a process that lists links', 'scrapes'
ALL_VFS = 1024
# Budgets of start-up and NCCL configuration were set on a machine that takes this long for /bin/true; a slower one gets as much more.
REFERENCE_TRUE_MS = 0.66


@dataclasses.dataclass
class Verdict:
    budget: str   # "ADD <= 1.5 x bare kernel + one IPAM exec, VF"
    figures: str  # "61.20 ms; budget 70.10 ms = 1.5 x 45.00 + 2.60"
    outcome: str


def judge(budget: str, series: list[Series | None], compare: Callable[..., tuple[str, bool]]) -> Verdict:
    """`compare` gets the series, if all were measured: the figures, and whether the budget is met."""
    if None in series:
        return Verdict(budget, 'not measured', FAILED)
    figures, met = compare(*series)
    return Verdict(budget, figures, MET if met else MISSED)


def ratio(budget: str, over: Series | None, under: Series | None, met: Callable[[float], bool], inverse: bool = False) -> Verdict:
    """Of the medians; `inverse`: shown is that of `under`."""
    def compare(over: Series, under: Series) -> tuple[str, bool]:
        value = over.median() / under.median()
        ours, base = (under, over) if inverse else (over, under)
        return (f'{value:.2f} x: {ours.median():.2f} {ours.unit} beside {base.median():.2f} {base.unit}', met(value))
    return judge(budget, [over, under], compare)


def below(budget: str, series: Series | None, limit: float, share: float = 0.5) -> Verdict:
    """Its median, its 99th percentile or its largest value."""
    def compare(series: Series) -> tuple[str, bool]:
        value = series.median() if share == 0.5 else series.percentile(share)
        p50 = '' if share == 0.5 else f' (p50 {series.median():.2f})'
        return f'{value:.2f} {series.unit}{p50}', value < limit
    return judge(budget, [series], compare)


def beside_bare(record: Record, group: str, where: str) -> Verdict:
    def compare(add: Series, bare: Series, ipam: Series) -> tuple[str, bool]:
        limit = 1.5 * bare.median() + ipam.median()
        return (f'{add.median():.2f} ms; budget {limit:.2f} ms = 1.5 x {bare.median():.2f} + {ipam.median():.2f}',
                add.median() <= limit)
    return judge(f'ADD <= 1.5 x bare kernel + one IPAM exec, {where}',
                 [record.find(group, who, 'ADD') for who in (RAILHEAD, BARE, IPAM)], compare)


def beside_chain(record: Record) -> Verdict:
    chain, bare = record.find('vf', CHAIN, 'ADD'), record.find('vf', BARE, 'ADD')
    verdict = ratio('ADD at least 3 x faster than host-device + host-local + tuning + sbr, VF', chain,
                    record.find('vf', RAILHEAD, 'ADD'), lambda value: value >= 3, inverse=True)
    if verdict.outcome != FAILED and bare:  # how much of that is out of any plugin's reach
        verdict.figures += f' (the bare kernel alone: {chain.median() / bare.median():.2f} x)'
    return verdict


def on_this_machine(budget: str, ms: float, group: str, record: Record, series: Series | None, above_true: bool) -> Verdict:
    """A budget that grows with what /bin/true takes, of the whole or of what is above /bin/true."""
    def compare(series: Series, base: Series) -> tuple[str, bool]:
        limit = ms * max(1.0, base.median() / REFERENCE_TRUE_MS)
        value = series.median() - (base.median() if above_true else 0)
        figures = (f"{value:.2f} ms{' above' if above_true else ''}; budget {limit:.2f} ms on a machine that takes "
                   f'{base.median():.2f} ms for /bin/true')
        return figures, value <= limit if above_true else value < limit
    return judge(budget, [series, record.find(group, TRUE, 'start-up')], compare)


def rtnl(record: Record, group: str, base: str, factor: float, budget: str) -> Verdict:
    """The 99th percentile beside scrapes. On this machine against that beside a process that takes as much of the
    processors and no lock: the difference is the lock's. In the guest against that beside one that lists links, which
    takes the lock as well: there a processor may stop in the middle of anything, and who needs the lock that it holds
    waits for it."""
    def compare(ours: Series, computing: Series, listing: Series, alone: Series) -> tuple[str, bool]:
        by = {series.who: series.percentile(0.99) for series in (ours, computing, listing, alone)}
        value = by[ours.who] / by[base]
        figures = (f'{value:.2f} x: {by[ours.who]:.0f} us; beside nothing {by[alone.who]:.0f} us, {computing.who} '
                   f'{by[computing.who]:.0f} us, one that lists links {by[listing.who]:.0f} us')
        return figures, value <= factor
    beside = (SCRAPING, COMPUTING, LISTING, ALONE)
    return judge(budget, [record.find(group, who, 'a change of a link') for who in beside], compare)


def of_guest(record: Record) -> list[Verdict]:
    def add(group: str, who: str) -> Series | None:
        return record.find(group, who, 'ADD')

    return [
        beside_bare(record, 'vf', 'VF'), beside_bare(record, 'vf-rxe', 'VF with soft RoCE'), beside_chain(record),
        ratio('ADD of eight VFs <= 1.25 x two ip -batch', add('rails', RAILHEAD), add('rails', IP_BATCH),
              lambda value: value <= 1.25),
        ratio('ADD of eight VFs with soft RoCE <= 1.25 x two ip -batch + rdma -batch', add('rails-rxe', RAILHEAD),
              add('rails-rxe', IP_BATCH), lambda value: value <= 1.25),
        ratio('ADD of eight VFs at least 4 x faster than eight host-device chains', add('rails', CHAIN), add('rails', RAILHEAD),
              lambda value: value >= 4, inverse=True),
        ratio('ADD with 1,000 journal entries within 10 % of that with 1', add('journal', MANY_ENTRIES), add('journal', ONE_ENTRY),
              lambda value: value <= 1.1),
        on_this_machine('NCCL configuration of eight VFs < 2 ms beside the kernel, with soft RoCE in the guest', 2, 'guest-startup', record,
                        add('rails-rxe', '- nccl'), False),
        rtnl(record, 'guest-rtnl', LISTING, 1, 'a change of a link beside scrapes of real PFs in the guest: p99 <= that beside a '
             'process that lists links')]


def of_host(record: Record) -> list[Verdict]:
    plugins = (RAILHEAD, IPAM)
    return [on_this_machine('NCCL configuration of eight VFs < 2 ms beside the kernel, on this machine', 2, 'startup', record,
                            record.find('nccl', RAILHEAD, 'ADD'), False),
            *[on_this_machine(f'start-up of {who} <= 0.3 ms above /bin/true', 0.3, 'startup', record,
                              record.find('startup', who, 'start-up'), True) for who in plugins],
            *[below(f'size of {who} < 3 MB', record.find('startup', who, 'size'), 3) for who in plugins],
            below('railheadd < 20 MB resident', record.find('daemon', DAEMON, 'resident'), 20)]


def of_node(record: Record) -> list[Verdict]:
    def found(who: str, what: str) -> Series | None:
        return record.find('node', who, what)

    def discovery(time: Series, bare: Series) -> tuple[str, bool]:
        return (f'{time.median():.2f} ms, {time.median() / bare.median():.2f} x reading the same files and no more '
                f'({bare.median():.2f} ms)', time.median() < 60)

    def allocate(own: Series, disk: Series, write: Series) -> tuple[str, bool]:
        return (f'{own.percentile(0.99):.2f} us (p50 {own.median():.2f}); on disk {disk.median() / 1e3:.2f} ms beside '
                f'{write.median() / 1e3:.2f} ms for one durable write alone', own.percentile(0.99) < 100)

    def doctor(time: Series, start: Series, bare: Series) -> tuple[str, bool]:
        return (f'{time.median():.2f} ms, of it {start.median():.2f} ms start and end of the process; reading what most files '
                f'are of and no more: {bare.median():.2f} ms', time.median() < 200)

    verdicts = [
        judge('discovery of 1,024 VFs < 60 ms', [found(DAEMON, 'discovery'), found(BARE_READING, 'discovery')], discovery),
        judge("Allocate's own work < 100 us (p99) beside one durable write",
              [found(who, 'Allocate 1') for who in (DAEMON, 'railheadd, on disk', 'one durable write')], allocate),
        below('preferred allocation of 8 out of 1,024 VFs < 1 ms (p99)', found(DAEMON, 'prefer 8'), 1000, 0.99),
        *[below(f'{who} with 1,024 VFs < 20 MB resident', found(who, 'resident'), 20, 1) for who in (DAEMON, LATE_POOL)],
        below('idle railheadd with 1,024 VFs < 0.1 % of a core', found(DAEMON, 'idle CPU'), 0.1, 1),
        below('a change of the node reported to kubelet < 1 s (max)', found(DAEMON, 'change to new list'), 1000, 1),
        below('a scrape of 1,024 VFs in pods < 50 ms of CPU (p50)', found(DAEMON, '/metrics/nics, CPU'), 50),
        rtnl(record, 'rtnl', COMPUTING, 2, 'a change of a link beside scrapes of 1,024 VFs: p99 <= 2 x that beside a process '
             'that computes'),
        judge('railctl doctor with 1,024 VFs < 200 ms',
              [found('railctl', 'doctor'), found('railctl', 'doctor --list: start and end'), found(BARE_READING, 'doctor')],
              doctor)]
    # A run with fewer devices (bench/node.sh -n) shows that it works, and no more.
    devices = found(DAEMON, 'devices')
    if devices and devices.median() < ALL_VFS:
        for verdict in verdicts:
            verdict.figures += f'; with no more than {devices.median():.0f} VFs'
    return verdicts


def of_ipam(record: Record) -> list[Verdict]:
    def found(who: str, what: str) -> Series | None:
        return record.find('ipam', who, what)

    def tail(took: Series) -> tuple[str, bool]:
        p99, median = took.percentile(0.99), took.median()
        return f'p99 {p99:.1f} ms, median {median:.1f} ms, max {max(took.values):.1f} ms', p99 < 10 * median

    empty, taken, burst, pods = 'ADD, empty pool', 'ADD, 900 taken', '32 at once, ADDs', '1,000 pods x 8 rails'
    return [ratio('ADD of railhead-ipam no slower than host-local, empty pool', found(HOST_LOCAL, empty), found(IPAM, empty),
                  lambda value: value >= 1, inverse=True),
            ratio('... at least 5 x faster with 900 addresses taken', found(HOST_LOCAL, taken), found(IPAM, taken),
                  lambda value: value >= 5, inverse=True),
            ratio('ADD of eight rails below 1.5 x one rail', found(IPAM, 'ADD, eight rails'), found(IPAM, empty),
                  lambda value: value < 1.5),
            ratio("32 at once: at least 1.5 x host-local's throughput, every commit durable", found(IPAM, burst),
                  found(HOST_LOCAL, burst), lambda value: value >= 1.5),
            judge('railhead-ipam, 32 at once: p99 below 10 x median', [found(IPAM, 'ADD, 32 at once')], tail),
            ratio('1,000 pods x 8 rails within the time of their synced commits', found(DISK_ALONE, pods), found(IPAM, pods),
                  lambda value: value >= 1, inverse=True)]


def verdicts(record: Record, host: bool = True, guest: bool = True, node: bool = True, ipam: bool = True) -> list[Verdict]:
    """Of the parts that a run should have measured."""
    return [*([beside_bare(record, 'stand-ins', 'stand-ins')] if host else []), *(of_guest(record) if guest else []),
            *(of_host(record) if host else []), *(of_node(record) if node else []), *(of_ipam(record) if ipam else [])]
