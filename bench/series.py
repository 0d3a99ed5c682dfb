"""What was measured: series of values, as lines of JSON that the parts of one run (this machine, the guest) write.

    {"group":"vf","who":"railhead","what":"ADD","unit":"ms","values":[61.2,60.8]}
"""
import dataclasses
import json
import math
import pathlib
import statistics

# Who.
TRUE = '/bin/true'
IPAM = 'railhead-ipam'
HOST_LOCAL = 'host-local'
BARE = 'bare kernel'
RAILHEAD = 'railhead'
CHAIN = 'host-device chain'
IP_BATCH = 'two ip -batch'
ONE_ENTRY = '1 entry'
MANY_ENTRIES = '1000 entries'
SAME_TENANT = 'the same namespace'
OTHER_TENANT = 'another namespace'
DAEMON = 'railheadd'
LATE_POOL = 'railheadd, late binding'
BARE_READING = 'bare reading'
DISK_ALONE = 'the disk alone'


class Failed(Exception):
    """What could not be measured, and why."""


@dataclasses.dataclass
class Series:
    """Values of one kind; what it tells is of at least one."""
    group: str
    who: str
    what: str
    unit: str
    values: list[float]

    def median(self) -> float:
        return statistics.median(self.values)

    def percentile(self, share: float) -> float:
        """The smallest that is not less than this share of the values (nearest rank)."""
        return sorted(self.values)[max(1, math.ceil(share * len(self.values))) - 1]


@dataclasses.dataclass
class Part:
    """One process of an ADD or DEL."""
    name: str
    ms: float
    cpu_ms: float = 0


class Record:
    """All series of a run, in the order in which they were first added."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str, str], Series] = {}

    def add(self, group: str, who: str, what: str, unit: str, *values: float) -> None:
        series = self._series.setdefault((group, who, what), Series(group, who, what, unit, []))
        series.values.extend(values)

    def add_parts(self, group: str, who: str, what: str, parts: list[Part]) -> None:
        """The sum of the parts as `what` and `what` CPU; when there are several, each by itself."""
        self.add(group, who, what, 'ms', sum(part.ms for part in parts))
        self.add(group, who, what + ' CPU', 'ms', sum(part.cpu_ms for part in parts))
        if len(parts) > 1:
            for part in parts:
                self.add(group, '- ' + part.name, what, 'ms', part.ms)

    def find(self, group: str, who: str, what: str) -> Series | None:
        """None: not measured."""
        found = self._series.get((group, who, what))
        return found if found and found.values else None

    def of(self, group: str) -> list[Series]:
        return [series for series in self._series.values() if series.group == group and series.values]

    def append_to(self, path: str) -> None:
        """The file may have lines of other parts."""
        with open(path, 'a', encoding='utf-8') as file:
            for series in self._series.values():
                file.write(json.dumps(dataclasses.asdict(series)) + '\n')

    def read(self, path: str) -> None:
        """Adds the lines of a file."""
        try:
            lines = pathlib.Path(path).read_text(encoding='utf-8').splitlines()
        except FileNotFoundError:
            raise Failed(f'there is no {path}: has that part been measured?') from None
        for number, line in enumerate(lines, 1):
            try:
                one = Series(**json.loads(line))
                self.add(one.group, one.who, one.what, one.unit, *map(float, one.values))
            except (ValueError, TypeError) as error:
                raise Failed(f'{path}, line {number}: {error}') from None
