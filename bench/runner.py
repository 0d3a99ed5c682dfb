"""bench_runner, which starts processes and holds a clock beside them."""
import dataclasses
import json
import subprocess
from collections.abc import Mapping, Sequence

from series import Failed


@dataclasses.dataclass
class Ran:
    """Of each process what it took; of all together the seconds; of the last one what it printed."""
    ms: list[float]
    cpu_ms: list[float]
    seconds: float
    output: str


@dataclasses.dataclass
class Awaited:
    """An interface in a pod; with an RDMA device, its GID of the address, too."""
    name: str
    rdma: str = ''
    address: str = ''


class Runner:
    """One process for all steps: a small one, so that little is copied for each process that it starts."""

    def __init__(self, programs: str) -> None:
        self._process = subprocess.Popen([f'{programs}/bench_runner'], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> 'Runner':
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, path: str, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None,
            text: str = '', count: int = 1, at_once: int = 1) -> Ran:
        """Nothing is inherited; "{n}" in the environment is the number of the process."""
        variables = [f'{name}={value}' for name, value in (environment or {}).items()]
        step = {'path': path, 'arguments': list(arguments), 'environment': variables, 'input': text}
        done = self._ask({'run': step, 'count': count, 'atOnce': at_once})
        return Ran(done['ms'], done['cpuMs'], done['seconds'], done['output'])

    def wait(self, netns: str, links: list[Awaited]) -> float:
        """Until all have carrier, and their GIDs are there; ms."""
        step = {'netns': netns, 'links': [dataclasses.asdict(link) for link in links]}
        return self._ask({'await': step})['ms'][0]

    def state(self, netns: str) -> dict:
        """Links, routes and rules of a pod, or of the host where it is ""."""
        return self._ask({'state': {'netns': netns} if netns else {}})

    def _ask(self, step: dict) -> dict:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(step) + '\n')
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise Failed('bench_runner has ended')
        done = json.loads(line)
        if 'error' in done:
            raise Failed(done['error'])
        return done
