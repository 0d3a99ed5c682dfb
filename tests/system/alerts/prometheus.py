"""A Prometheus of the test's own: on the loopback address, at a port that the kernel chooses, in a directory that goes with it."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

LIMIT = 60          # seconds, for whatever is waited for


class Prometheus:
    """Begins with `samples` (lines of OpenMetrics with times) and evaluates `rules` (texts by the names of their files)."""

    def __init__(self, samples, rules):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='railhead-prometheus-'))
        self.process = None
        try:
            self._start(samples, rules)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._stop()
        shutil.rmtree(self.directory)

    def _stop(self):
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def _start(self, samples, rules):
        # Whatever is older than the first sample that it takes itself has to be there before it begins.
        (self.directory / 'samples').write_text(samples + '# EOF\n', encoding='utf-8')
        self._promtool('tsdb', 'create-blocks-from', 'openmetrics', 'samples', 'data')
        self._write(rules)
        config = {'global': {'evaluation_interval': '1s'}, 'rule_files': sorted(rules)}
        (self.directory / 'config').write_text(json.dumps(config), encoding='utf-8')
        self._run()

    def _run(self):
        with open(self.directory / 'log', 'wb') as log:
            command = ['prometheus', '--config.file=config', '--storage.tsdb.path=data', '--storage.tsdb.retention.time=100y',
                       '--web.listen-address=127.0.0.1:0']
            self.process = subprocess.Popen(command, cwd=self.directory, stdout=log, stderr=log)
        self.port = self.wait('listens', self._port)
        self.wait('is ready', lambda: self._get('/-/ready') is not None)

    def _write(self, rules):
        for name, text in rules.items():
            (self.directory / name).write_text(text, encoding='utf-8')

    def _promtool(self, *words):
        subprocess.run(['promtool', *words], cwd=self.directory, check=True, capture_output=True)

    def backfill(self, rules, start, end, step):
        """What these rules would have recorded of what is there, between two times in seconds."""
        self._write(rules)
        self._promtool('tsdb', 'create-blocks-from', 'rules', f'--start={start}', f'--end={end}', f'--eval-interval={step}s',
                       f'--url=http://127.0.0.1:{self.port}', '--output-dir=data', *sorted(rules))
        # It takes up blocks when it begins.
        self._stop()
        self._run()

    def wait(self, what, condition):
        """Until it holds; its value."""
        end = time.monotonic() + LIMIT
        while not (value := condition()):
            if self.process.poll() is not None or time.monotonic() > end:
                log = (self.directory / 'log').read_text(encoding='utf-8', errors='replace')
                raise RuntimeError(f'Prometheus never {what}:\n{log[-4000:]}')
            time.sleep(0.05)
        return value

    def _port(self):
        """Of the socket that it listens on: it tells nobody which port the kernel gave."""
        sockets = set()
        for link in pathlib.Path(f'/proc/{self.process.pid}/fd').glob('*'):
            try:
                sockets.update(re.findall(r'^socket:\[(\d+)\]$', str(link.readlink())))
            except OSError:          # closed meanwhile
                continue
        for line in pathlib.Path(f'/proc/{self.process.pid}/net/tcp').read_text(encoding='ascii').splitlines()[1:]:
            words = line.split()
            if words[3] == '0A' and words[9] in sockets:
                return int(words[1].partition(':')[2], 16)
        return None

    def _get(self, path):
        """Body; None: it is not ready for that."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f'http://127.0.0.1:{self.port}{path}', timeout=LIMIT) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            body = error.read()
            return body if error.code in (400, 422) else None

    def api(self, path, **parameters):
        """Data; ValueError with Prometheus' words."""
        answer = json.loads(self._get(f'/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}'))
        if answer['status'] != 'success':
            raise ValueError(answer['error'])
        return answer['data']
